"""Measurements, their medians, and ratios between them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from bench.plan import Variant

Quantity = Literal["step_ms", "engine_cpu_ms", "frames_per_s"]


@dataclass(frozen=True)
class Measurement:
    """One measurement.

    Attributes:
        cycle: None where the session came once.
        step_ms: milliseconds per decode step (per frame for sequential and client-side
            variants).
        frames_per_s: frames of all requests together; tokens for stock vLLM.
        engine_cpu_ms, client_cpu_ms, steps, rows_per_message: see
            :class:`bench.window.Window`.
    """

    variant: Variant
    dtype: str
    rows: int
    cycle: int | None
    round: int
    step_ms: float
    engine_cpu_ms: float
    client_cpu_ms: float
    frames_per_s: float
    steps: int
    rows_per_message: float


@dataclass(frozen=True)
class Spread:
    """Median, extremes and number of values."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(median(values), min(values), max(values), len(values))


@dataclass(frozen=True)
class Figure:
    """All measurements of one variant at one number of rows."""

    variant: Variant
    dtype: str
    rows: int
    step_ms: Spread
    engine_cpu_ms: Spread
    client_cpu_ms: Spread
    frames_per_s: Spread
    rows_per_message: float


@dataclass(frozen=True)
class Ratio:
    """One variant over another.

    Attributes:
        rows: of the numerator.
        per_cycle: one ratio of medians per cycle; a denominator that was measured once
            serves all cycles.
        spread: of ``per_cycle``.
    """

    dtype: str
    rows: int
    per_cycle: tuple[float, ...]
    spread: Spread


def figures(measurements: Iterable[Measurement]) -> list[Figure]:
    """Medians over all cycles and rounds, ordered by dtype, variant and rows as measured."""
    grouped: dict[tuple[str, Variant, int], list[Measurement]] = defaultdict(list)
    for m in measurements:
        grouped[m.dtype, m.variant, m.rows].append(m)
    return [
        Figure(
            variant,
            dtype,
            rows,
            Spread.of([m.step_ms for m in group]),
            Spread.of([m.engine_cpu_ms for m in group]),
            Spread.of([m.client_cpu_ms for m in group]),
            Spread.of([m.frames_per_s for m in group]),
            median(m.rows_per_message for m in group),
        )
        for (dtype, variant, rows), group in grouped.items()
    ]


def ratio(
    measurements: Sequence[Measurement],
    quantity: Quantity,
    dtype: str,
    numerator: tuple[Variant, int],
    denominator: tuple[Variant, int],
) -> Ratio | None:
    """The ratio of two ``(variant, rows)``, or None where one of them was not measured."""
    above = _by_cycle(measurements, quantity, dtype, numerator)
    below = _by_cycle(measurements, quantity, dtype, denominator)
    pairs = [(value, below.get(cycle, below.get(None))) for cycle, value in above.items()]
    per_cycle = tuple(value / other for value, other in pairs if other is not None)
    if not per_cycle:
        return None
    return Ratio(dtype, numerator[1], per_cycle, Spread.of(per_cycle))


def _by_cycle(
    measurements: Sequence[Measurement],
    quantity: Quantity,
    dtype: str,
    which: tuple[Variant, int],
) -> dict[int | None, float]:
    values: dict[int | None, list[float]] = defaultdict(list)
    for m in measurements:
        if m.dtype == dtype and (m.variant, m.rows) == which:
            values[m.cycle].append(getattr(m, quantity))
    return {cycle: median(group) for cycle, group in values.items()}
