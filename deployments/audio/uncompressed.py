"""Encoders for PCM and WAV, whose audio is the samples themselves."""

from __future__ import annotations

from deployments.audio import wav


class PcmEncoder:
    """Samples without a header."""

    media_type = "audio/pcm"

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate

    def encode(self, pcm: bytes) -> bytes:
        return pcm

    def finish(self) -> bytes:
        return b""


class WavStreamEncoder:
    """WAV whose length is not known when it begins."""

    media_type = "audio/wav"

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._pending_header = wav.header(sample_rate, None)

    def encode(self, pcm: bytes) -> bytes:
        encoded, self._pending_header = self._pending_header + pcm, b""
        return encoded

    def finish(self) -> bytes:
        return self.encode(b"")


class WavFileEncoder:
    """WAV with true sizes, which therefore comes all at once."""

    media_type = "audio/wav"

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._pcm = bytearray()

    def encode(self, pcm: bytes) -> bytes:
        self._pcm += pcm
        return b""

    def finish(self) -> bytes:
        return wav.file(self.sample_rate, bytes(self._pcm))
