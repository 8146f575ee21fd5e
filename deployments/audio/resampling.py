"""Another sample rate for PCM, as a stream."""

from __future__ import annotations

import numpy as np
import soxr

_FULL_SCALE = 2**15


class Resampler:
    """Resamples PCM (signed 16-bit little-endian mono) piece by piece.

    The pieces join without a seam, and how the input is cut does not change one sample. ``n``
    samples become ``n * to_rate / from_rate``, rounded.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        """
        Args:
            from_rate, to_rate: in Hz; where they are equal nothing is changed.
        """
        self._stream = (
            None
            if from_rate == to_rate
            # Not int16: there soxr adds noise that depends on how the stream is cut.
            else soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32")
        )

    def piece(self, pcm: bytes) -> bytes:
        """What is ready at the new rate, perhaps nothing."""
        return self._resample(pcm, last=False)

    def finish(self) -> bytes:
        """What was held back."""
        return self._resample(b"", last=True)

    def _resample(self, pcm: bytes, *, last: bool) -> bytes:
        if self._stream is None:
            return pcm
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        resampled = self._stream.resample_chunk(samples, last=last)
        return np.rint(resampled).clip(-_FULL_SCALE, _FULL_SCALE - 1).astype("<i2").tobytes()
