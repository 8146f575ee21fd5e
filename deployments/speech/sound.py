"""From a codec's PCM to the sound of an answer: speed, sample rate, format."""

from __future__ import annotations

from deployments.audio.formats import encoder
from deployments.audio.speed import Stretcher
from deployments.speech.body import SpeechOptions


class Sound:
    """The audio of one answer, in its order: stretched, resampled, encoded.

    Attributes:
        media_type: of the encoded audio.
        sample_rate: of the encoded audio, in Hz.
    """

    def __init__(self, options: SpeechOptions, codec_rate: int, *, streamed: bool) -> None:
        """
        Args:
            codec_rate: of the PCM, in Hz.
            streamed: whether bytes are wanted before all audio exists.
        """
        self._stretch = Stretcher(codec_rate, options.speed)
        self._encoder = encoder(
            options.response_format, codec_rate, streamed=streamed, sample_rate=options.sample_rate
        )
        self.media_type = self._encoder.media_type
        self.sample_rate = self._encoder.sample_rate

    def piece(self, pcm: bytes) -> bytes:
        """The bytes that are ready, perhaps none, after more PCM (16-bit, mono)."""
        return self._encoder.encode(self._stretch.piece(pcm))

    def finish(self) -> bytes:
        """The bytes that were held back."""
        return self._encoder.encode(self._stretch.finish()) + self._encoder.finish()
