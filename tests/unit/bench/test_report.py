"""Verdicts, and the report of a run."""

import json

import pytest

from bench.figures import Measurement
from bench.plan import Thoroughness, Variant
from bench.report import Run, table, to_json, to_text
from bench.targets import Judged, judge


def measured(variant: Variant, rows: int, step_ms: float, cycle: int | None = 0) -> Measurement:
    frames = 1000 * variant.requests(rows) / step_ms
    return Measurement(
        variant, "float32", rows, cycle, 0, step_ms, step_ms / 2, 1.0, frames, 64, 1.0
    )


MEASUREMENTS = [
    measured(Variant.SEQUENTIAL, 1, 5.0),
    measured(Variant.STOCK, 32, 10.0),
    measured(Variant.STOCK, 128, 20.0),
    measured(Variant.PLAIN, 32, 16.0),
    measured(Variant.PLAIN, 128, 22.0),
    measured(Variant.GUIDED, 32, 18.0),
    measured(Variant.GUIDED, 128, 22.0),
    measured(Variant.CLIENT_GUIDED, 32, 90.0, cycle=None),
]


def found(name: str, rows: int) -> Judged:
    (judged,) = (j for j in judge(MEASUREMENTS) if j.name == name and j.ratio.rows == rows)
    return judged


@pytest.mark.parametrize(
    ("name", "rows", "value", "passed"),
    [
        ("plain / stock step time", 32, 1.6, None),  # the target applies from 128 rows on
        ("plain / stock step time", 128, 1.1, True),
        ("guided / plain step time", 32, 1.125, False),
        ("guided / plain step time", 128, 1.0, True),
        ("plain / sequential frames per second", 32, 10.0, True),
        ("guided / client-side guided frames per second", 32, 5.0, True),
    ],
)
def test_verdicts(name: str, rows: int, value: float, passed: bool | None) -> None:
    judged = found(name, rows)
    assert judged.ratio.spread.median == pytest.approx(value)
    assert judged.passed is passed
    assert (judged.bound == "none") == (passed is None)


def test_no_verdict_without_both_sides() -> None:
    names = {(j.name, j.ratio.rows) for j in judge(MEASUREMENTS)}
    assert ("guided / client-side guided frames per second", 128) not in names
    assert judge([]) == []


def run(measurements: list[Measurement]) -> Run:
    return Run(
        thoroughness=Thoroughness((32, 128), ("float32",), 1, 1, 64),
        machine={
            "cpu": "a processor",
            "cores": 2,
            "vllm": "0.32.0",
            "torch": "2.13.0",
            "python": "3.11.1",
            "commit": "abc",
        },
        model={"parameters": 6_000_000},
        settings={},
        load=[0.5, 1.5],
        seconds=60.0,
        measurements=measurements,
    )


def test_json_is_plain_and_carries_the_verdict() -> None:
    data = json.loads(json.dumps(to_json(run(MEASUREMENTS))))
    assert data["targets_met"] is False
    assert len(data["measurements"]) == len(MEASUREMENTS)
    kept = [m for m in MEASUREMENTS if m.variant is not Variant.GUIDED]
    assert to_json(run(kept))["targets_met"] is True


def test_text_has_every_figure_and_verdict() -> None:
    text = to_text(run(MEASUREMENTS))
    assert "a processor, 2 cores" in text
    assert "load average 0.5 to 1.5" in text
    assert text.count("FAIL") == 1
    assert sum(line.startswith("plain ") for line in text.splitlines()) == 2 + 3 * 2


def test_table_aligns_columns() -> None:
    assert table(["name", "n"], [["a", "1"], ["long name", "100"]]) == (
        "name         n\na            1\nlong name  100"
    )
