"""What a metric is made of: names, units, labels, and how Prometheus sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Unit = Literal["seconds", "ratio", "bytes", "count", "info"]
Source = Literal["front end", "replica", "engine", "vocoder"]
Needs = Literal["gpu", "audio input", "audit log"]

RAY_PREFIX = "ray_"
SERVE_LABELS = ("application", "deployment", "replica")


@dataclass(frozen=True)
class Metric:
    """What every kind of metric has.

    Attributes:
        name: without Ray's prefix.
        unit: of its values.
        help: what it says, in one sentence.
        formula: how it is made of what is measured; "" where ``help`` says it.
        labels: beside those that Serve adds.
        source: where it is known.
        needs: without which it does not appear.
    """

    name: str
    unit: Unit
    help: str
    labels: tuple[str, ...]
    source: Source
    formula: str = ""
    needs: Needs | None = None

    @property
    def exported(self) -> tuple[str, ...]:
        """The names of its series as Prometheus has them."""
        return (RAY_PREFIX + self.name,)


@dataclass(frozen=True)
class Counter(Metric):
    """Only grows, while its process lives. Its name ends with ``_total``.

    Attributes:
        starts: values of its labels that appear at once, with 0: the first event is then an
            increase. Values that the process knows (its model) are not among them.
    """

    starts: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True)
class Gauge(Metric):
    """A value of the moment. Vanishes within half a minute of its process."""


@dataclass(frozen=True)
class Histogram(Metric):
    """A distribution.

    Beside it stands an exact sum: Ray makes ``_sum`` of the middles of buckets, which is not
    good enough for means.

    Attributes:
        buckets: upper bounds, ascending, above 0.
    """

    buckets: tuple[float, ...] = ()

    @cached_property
    def exact(self) -> Counter:
        """The sum of what was observed."""
        return Counter(
            f"{self.name}_exact_total",
            self.unit,
            f"Sum of {self.name}: over its _count, the mean.",
            self.labels,
            self.source,
            needs=self.needs,
        )

    @property
    def exported(self) -> tuple[str, ...]:
        name = RAY_PREFIX + self.name
        return (f"{name}_bucket", f"{name}_count", f"{name}_sum", *self.exact.exported)
