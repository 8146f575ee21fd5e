"""docs/benchmarks.md and its charts, from results. Pure: no measurement, no file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.findings import Row, Table, Value
from bench.plots import chart
from bench.results import Result

CHART_FOLDER = "benchmarks"


@dataclass(frozen=True)
class About:
    """What the document says of a part, beside its figures.

    Attributes:
        text: Markdown: what is measured, how, and what the columns mean.
    """

    title: str
    text: str


def document(
    introduction: str, results: Sequence[Result], about: Mapping[str, About]
) -> dict[str, str]:
    """All files, by path below docs/.

    Args:
        introduction: Markdown, the title included.
        results: in the order in which they are to appear.
        about: of every part, by name; those without a result are named.
    """
    files: dict[str, str] = {}
    blocks = [introduction.strip(), _summary(results, about)]
    for result in results:
        blocks.append(f"## {about[result.part].title}\n\n{about[result.part].text.strip()}")
        blocks.append(_circumstances(result))
        for index, table in enumerate(result.findings.tables if result.findings else ()):
            blocks.append(_block(table))
            for number, drawn in enumerate(table.charts):
                picture = chart(table.rows, drawn)
                if picture is not None:
                    name = f"{CHART_FOLDER}/{result.part}-{index}-{number}.svg"
                    files[name] = picture
                    blocks.append(f"![{drawn.title}]({name})")
    files["benchmarks.md"] = "\n\n".join(blocks) + "\n"
    return files


def _summary(results: Sequence[Result], about: Mapping[str, About]) -> str:
    rows: list[Row] = [
        {
            "part": f"[{about[result.part].title}](#{_anchor(about[result.part].title)})",
            "figure": verdict.name,
            "measured": verdict.value,
            "target": verdict.target,
            "": "met" if verdict.met else "**missed**",
        }
        for result in results
        if result.findings is not None
        for verdict in result.findings.verdicts
    ]
    text = "## Targets"
    if rows:
        text += f"\n\n{markdown(rows)}"
    failed = [about[result.part].title for result in results if not result.measured]
    if failed:
        text += f"\n\n**Not measured, since the harness failed: {'; '.join(failed)}.**"
    known = {result.part for result in results}
    missing = [part.title for name, part in about.items() if name not in known]
    if missing:
        text += f"\n\nNo results yet: {'; '.join(missing)}."
    return text


def _circumstances(result: Result) -> str:
    if result.error is not None:
        return f"**The measurement failed:** `{result.error}`"
    machine = result.machine
    return (
        f"*Profile {result.profile}, {result.device}: {machine['hardware']}; "
        f"vLLM {machine['vllm']}, torch {machine['torch']}; commit {machine['commit']}; "
        f"{result.began}, {result.seconds:.0f} s, load average {result.load[0]:.1f} before and "
        f"{result.load[1]:.1f} after.*"
    )


def _block(table: Table) -> str:
    parts = [f"### {table.name}"]
    if table.note:
        parts.append(table.note.strip())
    if table.rows:
        parts.append(markdown(table.rows))
    return "\n\n".join(parts)


def markdown(rows: Sequence[Row]) -> str:
    """A table: the columns of the first row; words to the left, numbers to the right."""
    head = list(rows[0])
    rules = ["---" if any(isinstance(row[name], str) for row in rows) else "---:" for name in head]
    lines = [head, rules, *([cell(row[name]) for name in head] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Value) -> str:
    """A value with three figures or so; nothing for what is missing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "none"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    if value == 0 or abs(value) >= 0.1:
        return f"{value:.2f}"
    return f"{value:.2g}"


def _anchor(title: str) -> str:
    """GitHub's for a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
