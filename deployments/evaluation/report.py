"""What an evaluation found, as plain values and as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from demo_voice.judges import Quality
from demo_voice.wer import Errors
from deployments.evaluation.manifest import Item, Task

_WORST = 10  # items that the report lists


@dataclass(frozen=True)
class Outcome:
    """One item, judged.

    Attributes:
        transcript: what the recogniser heard of speech, or what the model wrote of a recording.
        errors: of the transcript; None where there is no answer.
        quality: of speech.
        seconds: of its audio.
        finish: see :class:`deployments.evaluation.asking.Answer`.
    """

    item: Item
    transcript: str | None = None
    errors: Errors | None = None
    quality: Quality | None = None
    seconds: float | None = None
    finish: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A line of the results."""
        errors, quality = self.errors, self.quality
        return {
            **self.item.model_dump(exclude_none=True),
            "transcript": self.transcript,
            "word_errors": None if errors is None else errors.total,
            "words": None if errors is None else errors.words,
            "mos": None if quality is None else quality.p808,
            "mos_overall": None if quality is None else quality.overall,
            "seconds": self.seconds,
            "finish": self.finish,
            "error": self.error,
        }


def summary(outcomes: Sequence[Outcome]) -> dict[Task, dict[str, Any]]:
    """The figures of each task that there is; None where nothing was answered."""
    tasks: list[Task] = ["speech", "transcription"]
    found = {task: [o for o in outcomes if o.item.task == task] for task in tasks}
    return {task: _figures(of_task, task) for task, of_task in found.items() if of_task}


def _figures(outcomes: Sequence[Outcome], task: Task) -> dict[str, Any]:
    errors = [o.errors for o in outcomes if o.errors is not None]
    quality = [o.quality for o in outcomes if o.quality is not None]
    ends = [o.finish == "stop" for o in outcomes if o.finish is not None]
    total = sum(errors, Errors())
    of_sound = {
        "MOS (P.808)": fmean(q.p808 for q in quality) if quality else None,
        "MOS (P.835 overall)": fmean(q.overall for q in quality) if quality else None,
        "seconds of audio": sum(o.seconds or 0.0 for o in outcomes),
    }
    return {
        "items": len(outcomes),
        "failed": sum(o.error is not None for o in outcomes),
        "words": total.words,
        "word error rate": total.rate if errors else None,
        "substitutions": total.substitutions,
        "deletions": total.deletions,
        "insertions": total.insertions,
        "ended by itself": fmean(ends) if ends else None,
        **(of_sound if task == "speech" else {}),
    }


def to_markdown(
    outcomes: Sequence[Outcome], model: str, command: str, judges: dict[str, object]
) -> str:
    """The report: both tasks' figures, the worst items, what failed, and the judges."""
    parts = [f"# Evaluation of `{model}`\n\nMade by `{command}`."]
    for task, figures in summary(outcomes).items():
        rows = "\n".join(f"| {name} | {_cell(name, value)} |" for name, value in figures.items())
        parts.append(f"## {task.capitalize()}\n\n| | |\n|---|---:|\n{rows}")
    judged = [(o, o.errors) for o in outcomes if o.errors is not None and o.errors.total]
    worst = sorted(judged, key=lambda pair: -pair[1].rate)[:_WORST]
    if worst:
        lines = "\n".join(
            f"| {_plain(str(o.item.id))} | {e.rate:.0%} | {_plain(o.item.text)} | "
            f"{_plain(o.transcript or '')} |"
            for o, e in worst
        )
        head = "| id | word error rate | text | heard |\n|---|---:|---|---|"
        parts.append(f"## Most word errors\n\n{head}\n{lines}")
    failed = [o for o in outcomes if o.error is not None]
    if failed:
        lines = "\n".join(f"- `{o.item.id}`: {_plain(o.error or '')}" for o in failed)
        parts.append(f"## Failed\n\n{lines}")
    settings = "\n".join(f"- {name}: `{value}`" for name, value in judges.items())
    parts.append(
        "## The judges\n\nSpeech is written down by pocketsphinx with its own English models, and "
        "its quality estimated by DNSMOS. A transcript's words are compared in lower case without "
        "punctuation, numbers spelled out (docs/evaluation.md).\n\n" + settings
    )
    return "\n\n".join(parts) + "\n"


def _cell(name: str, value: float | int | None) -> str:
    if value is None:
        return ""
    if name in ("word error rate", "ended by itself"):
        return f"{value:.1%}"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _plain(text: str) -> str:
    """Text that a cell of a table can hold."""
    return " ".join(text.split()).replace("|", "\\|")
