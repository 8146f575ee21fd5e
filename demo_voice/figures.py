"""What is computed from measurements: durations, confidence intervals, playback. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from demo_voice.wer import Errors

LOUD_DB = -40.0
"""A stretch counts as speech if it is at most so much softer than the loudest one."""

_STRETCH = 0.01  # seconds
_RESAMPLES = 4000
_SEED = 1


def speech_seconds(samples: NDArray[np.int16], sample_rate: int) -> float:
    """From the first to the last stretch of 10 ms that is speech; 0 for silence.

    Args:
        sample_rate: of ``samples``, in Hz.
    """
    length = round(_STRETCH * sample_rate)
    whole = len(samples) // length * length
    power = (samples[:whole].astype(np.float64).reshape(-1, length) ** 2).mean(axis=1)
    if not power.any():
        return 0.0
    speech = np.flatnonzero(power >= power.max() * 10 ** (LOUD_DB / 10))
    return float((speech[-1] + 1 - speech[0]) * length / sample_rate)


@dataclass(frozen=True)
class Difference:
    """How much one word error rate exceeds another, with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def wer_difference(ours: Sequence[Errors], theirs: Sequence[Errors]) -> Difference:
    """Of the same sentences in the same order, by bootstrap over sentences.

    The two rates come from the same resample each time: what makes a sentence hard for both
    cancels out.
    """
    words = np.array([errors.words for errors in ours])
    more = np.array([a.total - b.total for a, b in zip(ours, theirs, strict=True)])
    picks = np.random.default_rng(_SEED).integers(len(words), size=(_RESAMPLES, len(words)))
    resampled = more[picks].sum(axis=1) / words[picks].sum(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Difference(float(more.sum() / words.sum()), float(low), float(high))


@dataclass(frozen=True)
class Playback:
    """A streamed answer as its listener had it, who starts to play at the first byte.

    Attributes:
        arrivals: seconds from sending the request to each piece of audio.
        pieces: seconds of audio in each.
        spent: seconds that the service says it spent on each step to the first audio, in order.
    """

    arrivals: tuple[float, ...]
    pieces: tuple[float, ...]
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def audio_seconds(self) -> float:
        """The whole audio."""
        return sum(self.pieces)

    @property
    def real_time_factor(self) -> float:
        """Seconds from the request to the last byte, per second of audio."""
        return self.arrivals[-1] / self.audio_seconds

    @property
    def first_audio(self) -> float:
        """Seconds from the request to the first byte of audio."""
        return self.arrivals[0]

    @property
    def headroom(self) -> float:
        """Seconds of audio not yet played when it was least; below 0, playback ran dry.

        Counted just before each piece but the first arrives; the whole audio where there is
        only one.
        """
        had = accumulate(self.pieces)
        left = (
            audio - (arrival - self.arrivals[0])
            for audio, arrival in zip(had, self.arrivals[1:], strict=False)
        )
        return min(left, default=self.audio_seconds)

    @property
    def underrun(self) -> float:
        """Seconds that playback stood still for want of audio, at most; 0 if it never did."""
        return max(0.0, -self.headroom)
