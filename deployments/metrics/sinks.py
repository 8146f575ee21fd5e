"""Where measurements go: to Ray in a replica, to a Prometheus registry where there is no Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import prometheus_client

from deployments.metrics.kinds import Counter, Gauge, Histogram, Metric

Labels = Mapping[str, str]


class Sink(Protocol):
    """Takes measurements; the labels are all those of the metric's definition."""

    def add(self, metric: Counter, amount: float, labels: Labels) -> None:
        """Adds ``amount``, at least 0, to a counter; 0 makes it appear."""
        ...

    def put(self, metric: Gauge, value: float, labels: Labels) -> None:
        """Sets a gauge."""
        ...

    def observe(self, metric: Histogram, value: float, labels: Labels) -> None:
        """Counts a value, and nothing else: the exact sum is a counter of its own."""
        ...


class Nowhere:
    """The sink of a process that nobody asks."""

    def add(self, metric: Counter, amount: float, labels: Labels) -> None:
        pass

    def put(self, metric: Gauge, value: float, labels: Labels) -> None:
        pass

    def observe(self, metric: Histogram, value: float, labels: Labels) -> None:
        pass


class RaySink:
    """Ray's metrics agent, by way of Serve, which adds its own labels.

    To be made, and first used, in the constructor of a deployment or later.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Any] = {}

    def add(self, metric: Counter, amount: float, labels: Labels) -> None:
        from ray.serve import metrics

        # Not ``inc``, which refuses 0.
        self._metric(metrics.Counter, metric)._record(float(amount), dict(labels))

    def put(self, metric: Gauge, value: float, labels: Labels) -> None:
        from ray.serve import metrics

        self._metric(metrics.Gauge, metric).set(float(value), dict(labels))

    def observe(self, metric: Histogram, value: float, labels: Labels) -> None:
        from ray.serve import metrics

        made = self._metric(metrics.Histogram, metric, boundaries=list(metric.buckets))
        made.observe(float(value), dict(labels))

    def _metric(self, make: Any, metric: Metric, **options: Any) -> Any:
        made = self._metrics.get(metric.name)
        if made is None:
            made = make(metric.name, metric.help, tag_keys=metric.labels, **options)
            self._metrics[metric.name] = made
        return made


class PrometheusSink:
    """A registry of ``prometheus_client``, for engines and benchmarks without Ray."""

    def __init__(self, registry: prometheus_client.CollectorRegistry | None = None) -> None:
        """
        Args:
            registry: one of its own if None.
        """
        self.registry = registry or prometheus_client.CollectorRegistry()
        self._metrics: dict[str, Any] = {}

    def add(self, metric: Counter, amount: float, labels: Labels) -> None:
        self._metric(prometheus_client.Counter, metric, labels).inc(amount)

    def put(self, metric: Gauge, value: float, labels: Labels) -> None:
        self._metric(prometheus_client.Gauge, metric, labels).set(value)

    def observe(self, metric: Histogram, value: float, labels: Labels) -> None:
        buckets = metric.buckets
        self._metric(prometheus_client.Histogram, metric, labels, buckets=buckets).observe(value)

    def text(self) -> str:
        """Everything, in Prometheus's text format."""
        return prometheus_client.generate_latest(self.registry).decode()

    def _metric(self, make: Any, metric: Metric, labels: Labels, **options: Any) -> Any:
        made = self._metrics.get(metric.name)
        if made is None:
            made = make(metric.name, metric.help, metric.labels, registry=self.registry, **options)
            self._metrics[metric.name] = made
        return made.labels(**labels) if labels else made
