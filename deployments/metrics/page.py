"""docs/metrics.md, made of the definitions: ``python -m deployments.metrics.page``."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import Counter, Gauge, Histogram, Metric, Source

_SOURCES: dict[Source, str] = {
    "front end": "Requests, as front ends see them",
    "replica": "Requests, as engine replicas see them",
    "engine": "The engine",
    "vocoder": "The vocoder",
}
_NEEDS = {
    "gpu": "Only with a GPU.",
    "audio input": "Only for models that take audio.",
    "audit log": "Only with an audit log.",
}


def page() -> str:
    """The whole page."""
    opening = (files("deployments.metrics") / "page.txt").read_text()
    parts = [opening.rstrip()]
    for source, title in _SOURCES.items():
        parts.append(f"## {title}")
        parts.append(_table(metric for metric in DEFINITIONS if metric.source == source))
    return "\n\n".join(parts) + "\n"


def _table(metrics: Iterable[Metric]) -> str:
    rows = ["| metric | labels | |", "|---|---|---|"]
    rows += [f"| {_name(m)} | {_labels(m)} | {_meaning(m)} |" for m in metrics]
    return "\n".join(rows)


def _name(metric: Metric) -> str:
    kind = {Counter: "counter", Gauge: "gauge", Histogram: "histogram"}[type(metric)]
    unit = "" if metric.unit in ("count", "info") else f", {metric.unit}"
    return f"`{metric.name}`<br>{kind}{unit}"


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels)


def _meaning(metric: Metric) -> str:
    sentences = [metric.help]
    if metric.formula:
        sentences.append(f"{metric.formula[0].upper()}{metric.formula[1:]}.")
    if metric.needs is not None:
        sentences.append(_NEEDS[metric.needs])
    if isinstance(metric, Histogram):
        sentences.append(f"Buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}.")
    return " ".join(sentences)


if __name__ == "__main__":
    print(page(), end="")
