"""Folders of a model directory (docs/generation.md); imports nothing heavy."""

CODEC_FOLDER = "codec"
SSL_FOLDER = "ssl"
AUDIO_ENCODER_FOLDER = "audio_encoder"
