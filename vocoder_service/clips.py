"""Clips of audio that are to be encoded, and what encoders say of them."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
Codes = NDArray[np.int32]
Encoded = NDArray[np.int32] | NDArray[np.float32]
"""Codes [frames, streams], or embeddings [rows, width of the model]."""


class EncoderLimits(NamedTuple):
    """What a clip costs, told before it is encoded."""

    samples_per_row: int
    """At most so many samples become one row of a prompt."""
    max_samples: int | None = None
    """Of one clip; None: any number."""


class AudioEncoder(Protocol):
    """Turns audio into rows of a prompt."""

    @property
    def sample_rate(self) -> int:
        """Of the audio it takes, in Hz."""

    @property
    def limits(self) -> EncoderLimits:
        """Of the clips it takes."""

    def encode(self, samples: Samples) -> Encoded:
        """What a model reads of mono ``samples`` float32 [n >= 1] in [-1, 1].

        Of codes there are ceil(n / samples per frame) frames; the last is filled up with silence.

        Raises:
            ValueError: no samples, too many, another shape or type, or one that is not finite.
        """


class FrameEncoder(Protocol):
    """An audio encoder that makes codes."""

    num_codebooks: int
    sample_rate: int
    hop_length: int
    limits: EncoderLimits

    def encode(self, samples: Samples) -> Codes:
        """See ``AudioEncoder.encode``."""


def checked(samples: Samples) -> Samples:
    """``samples`` as they came.

    Raises:
        ValueError: see ``AudioEncoder.encode``.
    """
    if samples.ndim != 1 or samples.dtype != np.float32 or len(samples) == 0:
        raise ValueError(
            f"audio must be float32 [samples], not {samples.dtype} {list(samples.shape)}"
        )
    if not np.isfinite(samples).all():
        raise ValueError("audio has a sample that is not a finite number")
    return samples


def whole_frames(samples: Samples, hop_length: int) -> Samples:
    """``samples`` with silence behind them up to the end of their last frame."""
    return np.pad(samples, (0, -len(samples) % hop_length))
