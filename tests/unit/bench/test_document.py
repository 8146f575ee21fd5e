"""The report is a function of the results."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.document import About, cell, document, markdown
from bench.findings import Chart, Findings, Row, Table, Verdict
from bench.plots import chart, lines_of, nice_ticks
from bench.registry import PARTS, chosen
from bench.results import Result, read, read_all

ROWS: list[Row] = [
    {"variant": "plain", "rows": 1, "ms": 2.0},
    {"variant": "plain", "rows": 32, "ms": 4.0},
    {"variant": "stock", "rows": 1, "ms": None},
]
CHART = Chart("Step <time>", "rows", "ms", ("variant",), logarithmic=True, line=5.0)
FINDINGS = Findings(
    [Table("Step times", ROWS, "A note.", [CHART])],
    [Verdict("step", 4.0, at_most=5.0), Verdict("frames", 3.0, at_least=4.0)],
    {"single": [1, 2]},
)
ABOUT = {"engine": About("The engine", "Text."), "host": About("Host work", "More.")}


def result(part: str = "engine", error: str | None = None) -> Result:
    return Result(
        part=part,
        profile="quick",
        device="cpu",
        began="2026-11-30T10:00:00+00:00",
        seconds=12.3,
        machine={"hardware": "two cores", "vllm": "0.32.0", "torch": "2.13.0", "commit": "abc"},
        load=(0.5, 1.5),
        findings=None if error else FINDINGS,
        error=error,
    )


def test_the_document_has_every_table_chart_and_verdict() -> None:
    files = document("# Title\n", [result()], ABOUT)
    text = files["benchmarks.md"]
    assert text.startswith("# Title\n\n## Targets\n")
    assert "| [The engine](#the-engine) | step | 4.00 | at most 5 | met |" in text
    assert "| [The engine](#the-engine) | frames | 3.00 | at least 4 | **missed** |" in text
    assert "## The engine\n\nText.\n\n*Profile quick, cpu: two cores;" in text
    assert "| plain | 32 | 4.00 |" in text
    assert "| stock | 1 |  |" in text
    [picture] = re.findall(r"!\[Step <time>\]\((.*)\)", text)
    ElementTree.fromstring(files[picture])
    assert set(files) == {"benchmarks.md", picture}


def test_equal_results_give_equal_documents_after_a_way_through_files(tmp_path: Path) -> None:
    result().write(tmp_path)
    again = read(tmp_path, "engine")
    assert again is not None
    assert document("#", [again], ABOUT) == document("#", [result()], ABOUT)
    assert [r.part for r in read_all(tmp_path, ["host", "engine"])] == ["engine"]
    assert list(tmp_path.iterdir()) == [tmp_path / "engine.json"]
    assert json.loads((tmp_path / "engine.json").read_text())["findings"]["raw"] == {
        "single": [1, 2]
    }


def test_a_failed_harness_is_no_verdict() -> None:
    text = document("#", [result(error="OSError: no"), result("host")], ABOUT)["benchmarks.md"]
    assert "**Not measured, since the harness failed: The engine.**" in text
    assert "**The measurement failed:** `OSError: no`" in text
    assert text.count("missed") == 1
    assert "No results yet" not in text


def test_parts_without_a_result_are_named() -> None:
    text = document("#", [result()], ABOUT)["benchmarks.md"]
    assert "\n\nNo results yet: Host work.\n\n" in text


def test_what_is_measured_already_need_not_be_measured_again() -> None:
    assert result().answers("quick", "cpu", "abc")
    assert not result().answers("full", "cpu", "abc")
    assert not result().answers("quick", "cuda", "abc")
    assert not result().answers("quick", "cpu", "abd")
    assert not result(error="no").answers("quick", "cpu", "abc")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        ("word", "word"),
        (12345, "12,345"),
        (12345.6, "12,346"),
        (99.96, "100.0"),
        (1.234, "1.23"),
        (0.0, "0.00"),
        (0.0123, "0.012"),
        (-0.5, "-0.50"),
        (math.nan, "none"),
    ],
)
def test_figures_are_written_with_about_three_digits(
    value: float | str | None, written: str
) -> None:
    assert cell(value) == written


def test_words_are_to_the_left_and_numbers_to_the_right() -> None:
    assert markdown(ROWS).splitlines()[1] == "| --- | ---: | ---: |"


def test_rows_of_a_table_have_the_same_columns() -> None:
    with pytest.raises(ValueError, match="different columns"):
        Table("x", [{"a": 1}, {"b": 1}])


def test_a_verdict_has_one_target_and_nothing_unmeasured_meets_it() -> None:
    with pytest.raises(ValueError, match="one target"):
        Verdict("x", 1.0)
    assert not Verdict("x", math.nan, at_most=1.0).met
    assert not Verdict("x", math.nan, at_least=1.0).met


def test_a_line_for_each_combination_of_values() -> None:
    lines = lines_of(ROWS, CHART)
    assert lines == {"plain": [(1.0, 2.0), (32.0, 4.0)]}
    assert list(lines_of(ROWS, Chart("", "ms", "ms", ("rows",)))) == ["rows 1", "rows 32"]


def test_no_chart_of_a_single_point() -> None:
    assert chart(ROWS[:1], CHART) is None


@pytest.mark.parametrize("highest", [0.003, 0.7, 1.0, 9.0, 10.0, 41.0, 1234.0])
def test_ticks_are_round_and_reach_beyond_everything(highest: float) -> None:
    ticks = nice_ticks(highest)
    assert ticks[0] == 0
    assert highest <= ticks[-1] * (1 + 1e-9)
    assert ticks[-2] < highest
    assert 3 <= len(ticks) - 1 <= 6


def test_every_part_says_what_it_is() -> None:
    titles = [part.load().ABOUT.title for part in PARTS]
    assert len(set(titles)) == len(titles)


def test_parts_are_chosen_by_name_and_by_target() -> None:
    assert chosen(None, None) == list(PARTS)
    assert [part.name for part in chosen(["engine"], None)] == ["engine"]
    assert chosen(["engine"], "http") == []
    assert {part.target for part in chosen(None, "http")} == {"http"}
