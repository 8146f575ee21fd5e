"""Measurements of this process: one call where a thing is known.

Like logging, metrics belong to the process and not to an object: whoever starts a process says
once where they go, and until then they go nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import Counter, Gauge, Histogram, Metric
from deployments.metrics.sinks import Nowhere, Sink

_sink: Sink = Nowhere()
_known: dict[str, str] = {}


def use(sink: Sink, **known: str) -> None:
    """Has measurements go to ``sink`` from now on; counters that start at 0 appear there.

    Args:
        known: labels that all measurements of this process share, if their metric has them.
    """
    global _sink, _known
    _sink, _known = sink, known
    for metric in DEFINITIONS:
        if isinstance(metric, Counter):
            for labels in metric.starts:
                if set(metric.labels) == {*dict(labels), *_shared(metric)}:
                    add(metric, 0, **dict(labels))


@contextmanager
def using(sink: Sink, **known: str) -> Iterator[None]:
    """``use`` for the length of a block."""
    before = _sink, _known
    use(sink, **known)
    try:
        yield
    finally:
        use(before[0], **before[1])


def add(metric: Counter, amount: float = 1, /, **labels: str) -> None:
    """Adds to a counter."""
    _sink.add(metric, amount, _all(metric, labels))


def put(metric: Gauge, value: float, /, **labels: str) -> None:
    """Sets a gauge, which Ray forgets unless it is set again within 20 seconds."""
    _sink.put(metric, value, _all(metric, labels))


def observe(metric: Histogram, value: float, /, **labels: str) -> None:
    """Counts a value, at least 0, in its bucket, and adds it to the exact sum."""
    add(metric.exact, value, **labels)
    _sink.observe(metric, value, _all(metric, labels))


def count(metric: Histogram, value: float, times: int) -> None:
    """Counts a value in its bucket so many times; the exact sum comes from elsewhere."""
    labels = _all(metric, {})
    for _ in range(times):
        _sink.observe(metric, value, labels)


def _shared(metric: Metric) -> dict[str, str]:
    return {name: value for name, value in _known.items() if name in metric.labels}


def _all(metric: Metric, labels: Mapping[str, str]) -> dict[str, str]:
    every = {**_shared(metric), **labels}
    if isinstance(_sink, Nowhere):
        return every
    if set(every) != set(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}, got {sorted(every)}")
    return every
