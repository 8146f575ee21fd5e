"""What a demonstration voice should reach. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from demo_voice.results import LONGEST, SHORTEST, Evaluation, dry_share, quality, slowest
from demo_voice.texts import HELD_OUT_DOMAINS


@dataclass(frozen=True)
class Target:
    """A bound on one figure.

    Attributes:
        figure: of an evaluation.
        form: format specification of figure and bound.
        at_most, at_least: the bound; one of them.
    """

    name: str
    figure: Callable[[Evaluation], float]
    form: str = ".1%"
    at_most: float | None = None
    at_least: float | None = None

    @property
    def bound(self) -> str:
        """The target in words."""
        if self.at_most is not None:
            return f"at most {self.at_most:{self.form}}"
        return f"at least {self.at_least:{self.form}}"

    def met(self, evaluation: Evaluation) -> bool:
        """Whether the figure is within the bound."""
        value = self.figure(evaluation)
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )


def _quality_lost(evaluation: Evaluation) -> float:
    served = evaluation.served[evaluation.scale]
    return quality(evaluation.teacher).p808 - quality(served).p808


def _over_teacher(domain: str) -> Callable[[Evaluation], float]:
    return lambda e: e.at(e.scale).of(domain=domain).over_teacher.value


_WORDS_LOST = {"everyday": 0.10}  # of the other domains: 0.15

TARGETS = (
    *(
        Target(
            f"word error rate, served less teacher, {domain}",
            _over_teacher(domain),
            at_most=_WORDS_LOST.get(domain, 0.15),
        )
        for domain in HELD_OUT_DOMAINS
    ),
    Target("ended by itself", lambda e: e.at(e.scale).stop_share, at_least=0.99),
    Target(
        f"{SHORTEST:g} to {LONGEST:g} times as long as the teacher",
        lambda e: e.at(e.scale).lasting_share,
        at_least=0.97,
    ),
    Target("MOS by P.808, teacher less served", _quality_lost, ".2f", at_most=0.5),
    Target("real-time factor, slowest of single streams", lambda e: slowest(e.one), ".2f", 0.5),
    Target(
        "real-time factor, slowest of concurrent streams", lambda e: slowest(e.many), ".2f", 1.0
    ),
    Target("concurrent streams that ran dry", lambda e: dry_share(e.many), at_most=0.0),
)
