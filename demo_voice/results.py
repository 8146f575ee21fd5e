"""What an evaluation found, sentence by sentence, and its sums. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from demo_voice.figures import Difference, Playback, wer_difference
from demo_voice.judges import Quality
from demo_voice.sources import Sentence
from demo_voice.wer import Errors

SHORTEST, LONGEST = 0.7, 1.4
"""A duration, over the teacher's, that is as it should be."""


@dataclass(frozen=True)
class Result:
    """One sentence of one source, judged.

    Attributes:
        speech_seconds: without the silence before and after.
        finish: why the service ended it, ``stop`` or ``length``; None for other sources.
    """

    sentence: Sentence
    transcript: str
    errors: Errors
    quality: Quality
    speech_seconds: float
    finish: str | None


@dataclass(frozen=True)
class Comparison:
    """Some sentences as all three sources spoke them, in the same order."""

    teacher: Sequence[Result]
    round_trip: Sequence[Result]
    served: Sequence[Result]

    def of(self, *, domain: str | None = None, voice: str | None = None) -> Comparison:
        """The sentences of a domain or of a voice only."""

        def chosen(results: Sequence[Result]) -> list[Result]:
            return [
                result
                for result in results
                if domain in (None, result.sentence.domain)
                and voice in (None, result.sentence.voice)
            ]

        return Comparison(chosen(self.teacher), chosen(self.round_trip), chosen(self.served))

    @property
    def over_teacher(self) -> Difference:
        """Word error rate, the service's less the teacher's."""
        return _difference(self.served, self.teacher)

    @property
    def over_round_trip(self) -> Difference:
        """Word error rate, the service's less the round trip's."""
        return _difference(self.served, self.round_trip)

    @property
    def duration_ratios(self) -> list[float]:
        """Seconds of speech, the service's over the teacher's."""
        pairs = zip(self.served, self.teacher, strict=True)
        return [ours.speech_seconds / theirs.speech_seconds for ours, theirs in pairs]

    @property
    def median_duration_ratio(self) -> float:
        """The middle one."""
        return median(self.duration_ratios)

    @property
    def lasting_share(self) -> float:
        """Share of the sentences that take about as long as the teacher's."""
        return fmean(SHORTEST <= ratio <= LONGEST for ratio in self.duration_ratios)

    @property
    def stop_share(self) -> float:
        """Share of the sentences that the model ended by itself."""
        return fmean(result.finish == "stop" for result in self.served)


@dataclass(frozen=True)
class Evaluation:
    """Everything that was measured.

    Attributes:
        fingerprint: SHA-256 of the model's files.
        scale: guidance that the model is meant to be used with.
        judges: what the judgements depend on beside the audio.
        cores: that the evaluation and the service had, all together.
        served: by guidance scale; ``scale`` is among them.
        one: streams that had the service to themselves.
        many: streams that were served ``together`` at a time.
    """

    model: str
    fingerprint: str
    scale: float
    judges: dict[str, object]
    cores: int
    command: str
    teacher: Sequence[Result]
    round_trip: Sequence[Result]
    served: dict[float, Sequence[Result]]
    one: Sequence[Playback]
    many: Sequence[Playback]
    together: int

    def at(self, scale: float) -> Comparison:
        """The three sources, the service's with guidance ``scale``."""
        return Comparison(self.teacher, self.round_trip, self.served[scale])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def wer(results: Iterable[Result]) -> float:
    """Word error rate over all sentences together."""
    return sum((result.errors for result in results), Errors()).rate


def quality(results: Sequence[Result]) -> Quality:
    """Mean scores."""
    each = [result.quality for result in results]
    return Quality(
        overall=fmean(q.overall for q in each),
        signal=fmean(q.signal for q in each),
        background=fmean(q.background for q in each),
        p808=fmean(q.p808 for q in each),
    )


def dry_share(streams: Sequence[Playback]) -> float:
    """Share of the streams whose playback ran dry."""
    return fmean(stream.headroom < 0 for stream in streams)


def slowest(streams: Sequence[Playback]) -> float:
    """The highest real-time factor."""
    return max(stream.real_time_factor for stream in streams)


def _difference(ours: Sequence[Result], theirs: Sequence[Result]) -> Difference:
    return wer_difference([a.errors for a in ours], [b.errors for b in theirs])
