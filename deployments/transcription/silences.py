"""Where audio can be cut without cutting a word: at its silences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

_STEP_SECONDS = 0.02
_LEAST_LEVEL = 1e-3  # -60 dB of full scale: what is below is silence in any recording
_BELOW_LOUD = 0.05  # -26 dB of how loud the speech is
_PAUSE_SECONDS = 0.5  # of silence that ends a part
PART_SECONDS = 30.0
"""Of speech at once, as models are trained on."""
_MARGIN_SECONDS = 0.2  # of silence that a part keeps around what is said


@dataclass(frozen=True)
class Span:
    """A part of a clip, in samples: ``first`` to ``end``, without the latter."""

    first: int
    end: int


def spoken_parts(
    samples: Samples, sample_rate: int, most_seconds: float = PART_SECONDS
) -> list[Span]:
    """The parts of a clip in which something is heard, in order, without overlap.

    Parts are divided by pauses. One that is longer than ``most_seconds`` is cut at its quietest
    places, such that none is much shorter than it could be. Of silence there is no part.

    Args:
        samples: mono float32 ``[n]`` in [-1, 1].
        sample_rate: in Hz.
        most_seconds: that a part may have; at least one second.
    """
    step = max(1, int(_STEP_SECONDS * sample_rate))
    levels = _levels(samples, step)
    loud = levels > max(_LEAST_LEVEL, _BELOW_LOUD * float(np.percentile(levels, 95)))
    if not loud.any():
        return []
    most = int(most_seconds * sample_rate) // step
    spans = []
    for first, end in _runs(loud):
        for begin, stop in _cut(levels, first, end, most):
            spans.append(Span(begin * step, min(stop * step, len(samples))))
    return spans


def _levels(samples: Samples, step: int) -> NDArray[np.float64]:
    """Root mean square of each step; the last one is filled up with zeros."""
    padded = np.pad(samples, (0, -len(samples) % step)).astype(np.float64)
    levels: NDArray[np.float64] = np.sqrt(np.square(padded).reshape(-1, step).mean(axis=1))
    return levels


def _runs(loud: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Steps of stretches without a long pause, with their margins."""
    pause, margin = round(_PAUSE_SECONDS / _STEP_SECONDS), round(_MARGIN_SECONDS / _STEP_SECONDS)
    heard = np.flatnonzero(loud)
    breaks = np.flatnonzero(np.diff(heard) > pause)
    firsts = heard[np.r_[0, breaks + 1]]
    lasts = heard[np.r_[breaks, len(heard) - 1]]
    return [
        (max(0, int(first) - margin), min(len(loud), int(last) + 1 + margin))
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _cut(levels: NDArray[np.float64], first: int, end: int, most: int) -> list[tuple[int, int]]:
    """One run in parts of at most ``most`` steps, cut where it is quietest."""
    parts = []
    while end - first > most:
        # As many parts as are needed, of about the same length.
        count = -(-(end - first) // most)
        ideal = first + (end - first) // count
        reach = min(first + most, end - 1) - ideal
        low = max(first + 1, ideal - max(reach, most // 4))
        high = min(first + most, end - 1)
        # Of equally quiet places the last: fewer parts.
        window = levels[low : high + 1]
        cut = low + len(window) - 1 - int(np.argmin(window[::-1]))
        parts.append((first, cut))
        first = cut
    return [*parts, (first, end)]
