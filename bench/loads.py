"""What a load on a service came to. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.findings import Row
from bench.listening import continuous, percentile
from bench.speaking import Answer

_CONTINUOUS = (0.05, 0.1, 0.2)  # seconds
_SHARES = ("p50", "p95", "p99")
LATENCIES = (
    *(f"{name} {share}" for name in ("TTFT", "TTFA", "TPOT", "RTF") for share in _SHARES),
    "TTFA / budget",
    *("underrun p50", "underrun p95", "underrun max", "C50 %", "C100 %", "C200 %"),
)
"""Columns of a load that say how it was for a listener."""
_FIRST_TOKEN = ("accept", "prefill")  # of the service's own steps, those before the first row


@dataclass(frozen=True)
class Load:
    """The answers of one load.

    Attributes:
        answers: all of them, failed and refused ones too.
        seconds: of the window in which the load was what it should be, from its start.
        frames_per_second: of the model's audio.
    """

    answers: Sequence[Answer]
    seconds: float
    frames_per_second: float

    @property
    def heard(self) -> list[Answer]:
        """The whole answers."""
        return [answer for answer in self.answers if answer.playback is not None]

    @property
    def audio_per_second(self) -> float:
        """Seconds of audio that arrived in the window, per second."""
        return sum(self._in_window(answer) for answer in self.heard) / self.seconds

    def _in_window(self, answer: Answer) -> float:
        assert answer.playback is not None
        arrived = zip(answer.playback.arrivals, answer.playback.pieces, strict=True)
        return sum(audio for late, audio in arrived if answer.asked + late <= self.seconds)

    @property
    def refused(self) -> int:
        """Requests that the service had no room for."""
        return sum(answer.refused for answer in self.answers)

    @property
    def failed(self) -> int:
        """Requests that should have been answered and were not, or wrongly."""
        return sum(answer.error is not None for answer in self.answers)

    @property
    def faults(self) -> list[str]:
        """What was wrong with each failed request, and its text."""
        return [f"{answer.error} ({answer.text!r})" for answer in self.answers if answer.error]

    def row(self) -> Row:
        """The figures; times in ms. Where nothing was heard there are none."""
        counts: Row = {
            "requests": len(self.answers),
            "refused": self.refused,
            "failed": self.failed,
            "audio s/s": self.audio_per_second,
            "frames/s": self.audio_per_second * self.frames_per_second,
        }
        heard = [answer.playback for answer in self.heard if answer.playback is not None]
        if not heard:
            return counts | dict.fromkeys(LATENCIES)
        first_token = [sum(h.spent[name] for name in _FIRST_TOKEN) for h in heard]
        first_audio = [h.first_audio for h in heard]
        per_frame = [
            (h.arrivals[-1] - first) / max(1, h.audio_seconds * self.frames_per_second - 1)
            for h, first in zip(heard, first_token, strict=True)
        ]
        factors = [h.real_time_factor for h in heard]
        underrun = [h.underrun for h in heard]
        values = [
            *(1000 * percentile(first_token, share) for share in (0.5, 0.95, 0.99)),
            *(1000 * percentile(first_audio, share) for share in (0.5, 0.95, 0.99)),
            *(1000 * percentile(per_frame, share) for share in (0.5, 0.95, 0.99)),
            *(percentile(factors, share) for share in (0.5, 0.95, 0.99)),
            percentile([h.first_audio / sum(h.spent.values()) for h in heard], 0.5),
            *(1000 * percentile(underrun, share) for share in (0.5, 0.95)),
            1000 * max(underrun),
            *(100 * continuous(heard, seconds) for seconds in _CONTINUOUS),
        ]
        return counts | dict(zip(LATENCIES, values, strict=True))


def arrivals(rate: float, seconds: float, rng: random.Random) -> Iterator[float]:
    """The times of a Poisson process of ``rate`` per second, below ``seconds``."""
    now = rng.expovariate(rate)
    while now < seconds:
        yield now
        now += rng.expovariate(rate)


def saturated(load: Load, seconds: float) -> bool:
    """Whether an open load is more than the service can do: it refuses, fails, or finishes much
    later than the last request came.

    Args:
        seconds: for which requests came.
    """
    if load.refused or load.failed:
        return True
    ends = [a.asked + a.playback.arrivals[-1] for a in load.heard if a.playback is not None]
    return bool(ends) and max(ends) > 1.5 * seconds


def in_two(row: Row, first: Sequence[str]) -> tuple[Row, Row]:
    """The throughput and the latencies of a row, each with the columns that name the load."""
    latencies = LATENCIES
    key: Row = {name: row[name] for name in first}
    return (
        key | {n: v for n, v in row.items() if n not in first and n not in latencies},
        key | {n: row[n] for n in latencies},
    )
