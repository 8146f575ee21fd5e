"""The comparisons that are made, and the bounds some of them should keep. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Measurement, Quantity, Ratio, ratio
from bench.findings import Verdict
from bench.plan import Variant


@dataclass(frozen=True)
class Comparison:
    """One variant over another, at every number of rows of the first.

    Attributes:
        denominator_rows: rows of the denominator; None for the same as the numerator's.
        at_most, at_least: the target; neither for a comparison that only informs.
        target_rows: rows at which the target applies; None for all.
    """

    name: str
    numerator: Variant
    denominator: Variant
    quantity: Quantity
    denominator_rows: int | None = None
    at_most: float | None = None
    at_least: float | None = None
    target_rows: tuple[int, ...] | None = None

    def has_target(self, rows: int) -> bool:
        """Whether it should keep a bound at so many rows."""
        bound = self.at_most is not None or self.at_least is not None
        return bound and (self.target_rows is None or rows in self.target_rows)


COMPARISONS = (
    Comparison(
        "plain / stock step time",
        Variant.PLAIN,
        Variant.STOCK,
        "step_ms",
        at_most=1.15,
        target_rows=(128, 256),
    ),
    Comparison("guided / plain step time", Variant.GUIDED, Variant.PLAIN, "step_ms", at_most=1.05),
    Comparison(
        "plain / sequential frames per second",
        Variant.PLAIN,
        Variant.SEQUENTIAL,
        "frames_per_s",
        denominator_rows=1,
        at_least=5.0,
        target_rows=(32,),
    ),
    Comparison(
        "guided / client-side guided frames per second",
        Variant.GUIDED,
        Variant.CLIENT_GUIDED,
        "frames_per_s",
        at_least=3.0,
    ),
    Comparison(
        "guided / sequential guided frames per second",
        Variant.GUIDED,
        Variant.SEQUENTIAL_GUIDED,
        "frames_per_s",
        denominator_rows=2,
    ),
    Comparison(
        "plain / batched transformers frames per second",
        Variant.PLAIN,
        Variant.BATCHED,
        "frames_per_s",
    ),
    Comparison("plain / stock engine CPU time", Variant.PLAIN, Variant.STOCK, "engine_cpu_ms"),
    Comparison("guided / plain engine CPU time", Variant.GUIDED, Variant.PLAIN, "engine_cpu_ms"),
    Comparison(
        "plain / stock step time, stock's default executor",
        Variant.PLAIN,
        Variant.STOCK_DEFAULT,
        "step_ms",
    ),
)


@dataclass(frozen=True)
class Judged:
    """What a comparison gave at one number of rows.

    Attributes:
        verdict: of the median; None where no target applies.
    """

    name: str
    ratio: Ratio
    verdict: Verdict | None

    @property
    def bound(self) -> str:
        """The target in words, ``none`` where none applies."""
        return "none" if self.verdict is None else self.verdict.target

    @property
    def passed(self) -> bool | None:
        """Whether the median keeps the target; None where none applies."""
        return None if self.verdict is None else self.verdict.met


def judge(
    measurements: Sequence[Measurement], comparisons: Sequence[Comparison] = COMPARISONS
) -> list[Judged]:
    """Every comparison that was measured, at all dtypes and rows."""
    judged = []
    for comparison in comparisons:
        found = {(m.dtype, m.rows): None for m in measurements if m.variant is comparison.numerator}
        for dtype, rows in found:
            result = ratio(
                measurements,
                comparison.quantity,
                dtype,
                (comparison.numerator, rows),
                (comparison.denominator, comparison.denominator_rows or rows),
            )
            if result is not None:
                judged.append(Judged(comparison.name, result, _verdict(comparison, result)))
    return judged


def _verdict(comparison: Comparison, result: Ratio) -> Verdict | None:
    if not comparison.has_target(result.rows):
        return None
    name = f"{comparison.name}, {result.rows} rows, {result.dtype}"
    median = result.spread.median
    return Verdict(name, median, comparison.at_most, comparison.at_least)
