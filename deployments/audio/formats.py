"""The audio formats of the API, as encoders that are fed piece by piece."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import soxr

from deployments.audio import wav

AudioFormat = Literal["wav", "pcm"]
OPENAI_PCM_RATE = 24_000


class Encoder(Protocol):
    """Turns PCM (signed 16-bit little-endian mono, at the codec's rate) into a format.

    Attributes:
        media_type: the answer's content type.
        sample_rate: of the encoded audio, in Hz.
    """

    media_type: str
    sample_rate: int

    def encode(self, pcm: bytes) -> bytes:
        """The bytes that are ready, perhaps none."""

    def finish(self) -> bytes:
        """The bytes that were held back."""


class PcmEncoder:
    """OpenAI's ``pcm``: 24 kHz. Resampled as a stream: pieces join without a seam."""

    media_type = "audio/pcm"
    sample_rate = OPENAI_PCM_RATE

    def __init__(self, codec_rate: int) -> None:
        self._resampler = (
            None
            if codec_rate == self.sample_rate
            # Not int16: there soxr adds noise that depends on how the stream is cut.
            else soxr.ResampleStream(codec_rate, self.sample_rate, 1, dtype="float32")
        )

    def encode(self, pcm: bytes) -> bytes:
        return self._resample(pcm, last=False)

    def finish(self) -> bytes:
        return self._resample(b"", last=True)

    def _resample(self, pcm: bytes, *, last: bool) -> bytes:
        if self._resampler is None:
            return pcm
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        resampled = self._resampler.resample_chunk(samples, last=last)
        return np.rint(resampled).clip(-(2**15), 2**15 - 1).astype("<i2").tobytes()


class WavStreamEncoder:
    """WAV whose length is not known when it begins; at the codec's rate."""

    media_type = "audio/wav"

    def __init__(self, codec_rate: int) -> None:
        self.sample_rate = codec_rate
        self._pending_header = wav.header(codec_rate, None)

    def encode(self, pcm: bytes) -> bytes:
        encoded, self._pending_header = self._pending_header + pcm, b""
        return encoded

    def finish(self) -> bytes:
        return self.encode(b"")


class WavFileEncoder:
    """WAV with true sizes, which therefore comes all at once; at the codec's rate."""

    media_type = "audio/wav"

    def __init__(self, codec_rate: int) -> None:
        self.sample_rate = codec_rate
        self._pcm = bytearray()

    def encode(self, pcm: bytes) -> bytes:
        self._pcm += pcm
        return b""

    def finish(self) -> bytes:
        return wav.file(self.sample_rate, bytes(self._pcm))


def encoder(audio_format: AudioFormat, codec_rate: int, *, streamed: bool) -> Encoder:
    """A fresh encoder for one answer.

    Args:
        codec_rate: of the PCM it will be fed, in Hz.
        streamed: whether bytes are wanted before all audio exists.
    """
    if audio_format == "pcm":
        return PcmEncoder(codec_rate)
    return WavStreamEncoder(codec_rate) if streamed else WavFileEncoder(codec_rate)
