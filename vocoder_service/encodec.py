"""EnCodec: convolutions around an LSTM."""

from pathlib import Path
from typing import Any

import torch
from transformers import EncodecConfig

from vocoder_service.checkpoint import Weights, read_safetensors, without_weight_norm
from vocoder_service.decoder import Codebooks, Codec, codebooks_used
from vocoder_service.seanet import seanet_config, seanet_decoder


def load_encodec(
    directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None
) -> Codec:
    """EnCodec of one channel. See ``load_codec``.

    Raises:
        ValueError: it needs whole recordings: stereo, cut into chunks, or normalised over time.
    """
    config: Any = EncodecConfig.from_pretrained(directory)
    if config.audio_channels != 1 or config.chunk_length_s or config.norm_type != "weight_norm":
        raise ValueError("an EnCodec in stereo, in chunks or normalised over time cannot be served")
    used = codebooks_used(config.num_quantizers, num_codebooks)
    tensors = read_safetensors(directory, ("quantizer", "decoder"))
    weights = Weights(without_weight_norm(tensors), device, dtype)
    size, width = config.codebook_size, config.codebook_dim
    name = "quantizer.layers.{}.codebook.embed"
    layers = [
        Codebooks([weights(name.format(index), size, width) for index in range(used)]),
        *seanet_decoder(seanet_config(config, config.num_lstm_layers), weights, "decoder.layers."),
    ]
    return Codec(layers, device, config.sampling_rate, used, size)
