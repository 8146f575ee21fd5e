"""The shape of a codec as seen by code that only moves frames of ids about."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.int64]
"""Codes of consecutive frames, int64 [frames, num_codebooks]."""


class CodecShape(Protocol):
    """What cutting a stream into windows needs to know of a codec."""

    @property
    def num_codebooks(self) -> int:
        """Streams of codes per frame."""

    @property
    def codebook_size(self) -> int:
        """Codes are 0 .. codebook_size - 1 in every stream."""

    @property
    def hop_length(self) -> int:
        """Samples per frame. Frame f of a decode begins at sample f * hop_length."""

    @property
    def right_context(self) -> int:
        """Frames after a frame that its samples depend on."""

    @property
    def first_frames(self) -> int:
        """Frames that must be known before the first can be decoded, unless there are no more.

        At least right_context + 1.
        """

    def num_samples(self, frames: int) -> int:
        """Exact length in samples of one decode of ``frames`` >= 1 frames.

        It may fall short of frames * hop_length at the end (DAC at 16 kHz: 320 T - 8).
        """


def check_frames(frames: NDArray[np.integer], num_codebooks: int, codebook_size: int) -> Frames:
    """Return ``frames`` [n, num_codebooks] as int64, or say what is wrong with them.

    Neither transformers nor a CUDA lookup refuses a code outside its codebook: the first returns
    another code's sound (a negative index), the second kills the process.

    Raises:
        ValueError: not an integer array of that shape, or a code outside 0 .. codebook_size - 1;
            the message names the stream, the frame and the value.
    """
    if frames.ndim != 2 or frames.shape[1] != num_codebooks:
        raise ValueError(
            f"frames must have shape [n, {num_codebooks}], not {list(map(int, frames.shape))}"
        )
    if not np.issubdtype(frames.dtype, np.integer):
        raise ValueError(f"frames must be integers, not {frames.dtype}")
    wrong = (frames < 0) | (frames >= codebook_size)
    if wrong.any():
        frame, stream = map(int, np.argwhere(wrong)[0])
        raise ValueError(
            f"stream {stream}: code {int(frames[frame, stream])} of frame {frame} "
            f"is outside 0..{codebook_size - 1}"
        )
    return frames.astype(np.int64)
