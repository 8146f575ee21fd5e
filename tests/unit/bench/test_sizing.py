"""The arithmetic of docs/scaling.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.sizing import (
    DEVICES,
    GIB,
    Device,
    Model,
    model,
    rows_in_memory,
    rows_in_real_time,
    step_seconds,
    tables,
)

DOCS = Path(__file__).parents[3] / "docs"
H100 = DEVICES[0]
# A gigabyte of weights, half a megabyte of KV for each row; a GPU that reads a gigabyte a second.
SMALL = Model("small", 500_000_000, 0, 0, 500_000)
SLOW = Device("slow", memory=24e9, bandwidth=1e9, flops=1e15)


@pytest.mark.parametrize(
    ("family", "gigabytes", "kv"),
    [
        ("bagpiper", 16.5, 2 * 36 * 8 * 128 * 2),
        ("opuslm", 14.886, 2 * 32 * 32 * 128 * 2),
        ("opuslm-dialogue", 3.77, 2 * 24 * 32 * 64 * 2),
    ],
)
def test_sizes_are_those_of_the_published_files(family: str, gigabytes: float, kv: int) -> None:
    assert model(family).weight_bytes / 1e9 == pytest.approx(gigabytes, rel=0.01)
    assert model(family).kv_bytes == kv


def test_a_step_of_few_rows_reads_weights_and_one_of_many_reads_cache() -> None:
    assert step_seconds(SMALL, SLOW, rows=1, context=0) == pytest.approx(1.0)
    assert step_seconds(SMALL, SLOW, rows=100, context=1000) == pytest.approx(1 + 50)


def test_where_arithmetic_takes_longer_it_counts() -> None:
    quick = Device("quick", memory=1e12, bandwidth=1e15, flops=1e9)
    assert step_seconds(SMALL, quick, rows=3, context=10) == pytest.approx(3.0)


def test_memory_bounds_the_rows() -> None:
    rows = rows_in_memory(SMALL, SLOW, context=1000)
    assert rows == int((0.95 * 24e9 - 1e9 - 6 * GIB) // 0.5e9)
    assert rows_in_memory(SMALL, Device("tiny", 2e9, 1e9, 1e15), 1000) == 0


def test_real_time_is_twenty_milliseconds_a_step() -> None:
    assert rows_in_real_time(SMALL, SLOW, 1000) == 0, "one row takes a second and a half"
    rows = rows_in_real_time(model("bagpiper"), H100, 1000)
    assert 0 < rows <= rows_in_memory(model("bagpiper"), H100, 1000)
    assert step_seconds(model("bagpiper"), H100, rows, 1000) <= 0.02


def test_the_page_has_these_tables() -> None:
    page = (DOCS / "scaling.md").read_text()
    assert tables() in page
