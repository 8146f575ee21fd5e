"""Medians, spreads and ratios."""

import pytest

from bench.figures import Measurement, Spread, figures, ratio
from bench.plan import Variant


def measured(
    variant: Variant, rows: int, cycle: int | None, step_ms: float, dtype: str = "float32"
) -> Measurement:
    return Measurement(
        variant, dtype, rows, cycle, 0, step_ms, step_ms / 2, 1.0, 1000 * rows / step_ms, 64, 1.0
    )


def test_spread() -> None:
    assert Spread.of([3.0, 1.0, 8.0]) == Spread(median=3.0, low=1.0, high=8.0, count=3)


def test_figures_group_by_variant_dtype_and_rows() -> None:
    values = [
        measured(Variant.STOCK, 8, 0, 10.0),
        measured(Variant.STOCK, 8, 1, 30.0),
        measured(Variant.STOCK, 8, 2, 20.0),
        measured(Variant.STOCK, 8, 0, 5.0, dtype="bfloat16"),
        measured(Variant.STOCK, 32, 0, 40.0),
    ]
    found = figures(values)
    assert [(f.dtype, f.rows, f.step_ms.median) for f in found] == [
        ("float32", 8, 20.0),
        ("bfloat16", 8, 5.0),
        ("float32", 32, 40.0),
    ]
    assert found[0].step_ms == Spread(20.0, 10.0, 30.0, 3)
    assert found[0].frames_per_s.median == pytest.approx(400)


def test_a_ratio_compares_within_cycles() -> None:
    # The machine becomes three times slower; within a cycle both sides feel it.
    values = [
        measured(Variant.STOCK, 8, 0, 10.0),
        measured(Variant.PLAIN, 8, 0, 11.0),
        measured(Variant.STOCK, 8, 1, 30.0),
        measured(Variant.PLAIN, 8, 1, 36.0),
    ]
    found = ratio(values, "step_ms", "float32", (Variant.PLAIN, 8), (Variant.STOCK, 8))
    assert found is not None
    assert found.per_cycle == pytest.approx((1.1, 1.2))
    assert found.spread.median == pytest.approx(1.15)


def test_a_ratio_takes_the_median_of_a_cycle_first() -> None:
    values = [measured(Variant.PLAIN, 8, 0, ms) for ms in (10.0, 12.0, 90.0)]
    values += [measured(Variant.STOCK, 8, 0, ms) for ms in (10.0, 10.0, 70.0)]
    found = ratio(values, "step_ms", "float32", (Variant.PLAIN, 8), (Variant.STOCK, 8))
    assert found is not None
    assert found.per_cycle == pytest.approx((1.2,))


def test_a_denominator_measured_once_serves_all_cycles() -> None:
    values = [measured(Variant.GUIDED, 8, cycle, 10.0 + cycle) for cycle in range(3)]
    values.append(measured(Variant.CLIENT_GUIDED, 8, None, 55.0))
    found = ratio(values, "step_ms", "float32", (Variant.GUIDED, 8), (Variant.CLIENT_GUIDED, 8))
    assert found is not None
    assert found.per_cycle == pytest.approx((10 / 55, 11 / 55, 12 / 55))


def test_what_was_not_measured_has_no_ratio() -> None:
    values = [measured(Variant.PLAIN, 8, 0, 10.0)]
    assert ratio(values, "step_ms", "float32", (Variant.PLAIN, 8), (Variant.STOCK, 8)) is None
