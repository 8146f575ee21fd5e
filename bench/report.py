"""A run as JSON and as a table for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.figures import Figure, Measurement, Spread, figures
from bench.plan import Thoroughness
from bench.targets import Judged, judge


@dataclass(frozen=True)
class Run:
    """All that a run measured.

    Attributes:
        machine: hardware, versions and threads (:mod:`bench.machine`).
        model: what the model is.
        settings: per setup and dtype, the engine's settings as vLLM resolved them.
        load: one-minute load average after each session, in order.
        seconds: duration of the run.
    """

    thoroughness: Thoroughness
    machine: dict[str, Any]
    model: dict[str, Any]
    settings: dict[str, dict[str, Any]]
    load: list[float]
    seconds: float
    measurements: list[Measurement]


def to_json(run: Run) -> dict[str, Any]:
    """Everything, figures and verdicts included; plain values."""
    judged = judge(run.measurements)
    return {
        "machine": run.machine,
        "model": run.model,
        "profile": asdict(run.thoroughness),
        "settings": run.settings,
        "load_average": run.load,
        "seconds": run.seconds,
        "targets_met": all(j.passed for j in judged if j.passed is not None),
        "verdicts": [
            {"name": j.name, "ratio": asdict(j.ratio), "bound": j.bound, "passed": j.passed}
            for j in judged
        ],
        "figures": [asdict(f) for f in figures(run.measurements)],
        "measurements": [asdict(m) for m in run.measurements],
    }


def to_text(run: Run) -> str:
    """The figures and verdicts as plain-text tables."""
    blocks = [_heading(run)]
    summary = figures(run.measurements)
    blocks.extend(_figures_table(dtype, summary) for dtype in run.thoroughness.dtypes)
    blocks.append(_verdicts_table(judge(run.measurements)))
    return "\n\n".join(blocks)


def _heading(run: Run) -> str:
    machine = run.machine
    return (
        f"{machine['cpu']}, {machine['cores']} cores; vLLM {machine['vllm']}, torch "
        f"{machine['torch']}, Python {machine['python']}; commit {machine['commit']}\n"
        f"{run.model['parameters'] / 1e6:.1f} M parameters, {run.thoroughness.cycles} cycles in "
        f"{run.seconds / 60:.1f} min, load average {min(run.load):.1f} to {max(run.load):.1f}"
    )


def _figures_table(dtype: str, summary: Sequence[Figure]) -> str:
    rows = [
        [
            figure.variant.value,
            str(figure.rows),
            _spread(figure.step_ms, 2),
            f"{figure.engine_cpu_ms.median:.2f}",
            f"{figure.client_cpu_ms.median:.2f}",
            _spread(figure.frames_per_s, 0),
            f"{figure.rows_per_message:.2f}",
        ]
        for figure in summary
        if figure.dtype == dtype
    ]
    head = [
        dtype,
        "rows",
        "ms per step",
        "engine CPU ms",
        "client CPU ms",
        "frames/s",
        "rows/message",
    ]
    return table(head, rows)


def _verdicts_table(judged: Sequence[Judged]) -> str:
    words = {True: "pass", False: "FAIL", None: ""}
    rows = [
        [
            each.name,
            each.ratio.dtype,
            str(each.ratio.rows),
            _spread(each.ratio.spread, 2),
            each.bound,
            words[each.passed],
        ]
        for each in judged
    ]
    return table(["ratio", "dtype", "rows", "median (low..high)", "target", ""], rows)


def _spread(spread: Spread, digits: int) -> str:
    return (
        f"{spread.median:.{digits}f} ({spread.low:.{digits}f}..{spread.high:.{digits}f})"
        if spread.count > 1
        else f"{spread.median:.{digits}f}"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their content: the first to the left, the others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
