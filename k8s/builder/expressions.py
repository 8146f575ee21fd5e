"""PromQL over the service's metrics, so that no dashboard can name one that does not exist."""

from __future__ import annotations

from deployments.metrics.kinds import RAY_PREFIX, Counter, Gauge, Histogram, Metric

_WINDOW = "$__rate_interval"


def series(metric: Metric, extra: str = "") -> str:
    """The selected series of a counter or gauge.

    Args:
        extra: further matchers, as ``status=~"5.."``.
    """
    return f"{RAY_PREFIX}{metric.name}{_selector(metric, extra)}"


def total(gauge: Gauge, by: str = "model") -> str:
    """The sum of a gauge."""
    return f"sum by ({by}) ({series(gauge)})"


def rate(counter: Counter, by: str = "model", extra: str = "") -> str:
    """How fast a counter grows, per second."""
    return f"sum by ({by}) (rate({series(counter, extra)}[{_WINDOW}]))"


def ratio(part: str, whole: str) -> str:
    """Of two expressions by the same labels."""
    return f"{part} / {whole}"


def count_rate(histogram: Histogram, by: str = "model", extra: str = "") -> str:
    """Observations per second."""
    name = f"{RAY_PREFIX}{histogram.name}_count"
    return f"sum by ({by}) (rate({name}{_selector(histogram, extra)}[{_WINDOW}]))"


def mean(histogram: Histogram, by: str = "model") -> str:
    """The exact mean of what was observed."""
    return ratio(rate(histogram.exact, by), count_rate(histogram, by))


def quantile(q: float, histogram: Histogram, by: str = "model", extra: str = "") -> str:
    """A quantile of what was observed, as exact as the buckets are narrow.

    Args:
        extra: further matchers.
    """
    buckets = _buckets(histogram, f"le, {by}" if by else "le", extra)
    return f"histogram_quantile({q}, {buckets})"


def share_within(bound: float, histogram: Histogram, by: str = "model", extra: str = "") -> str:
    """The share of what was observed that is at most ``bound``.

    Args:
        extra: further matchers.

    Raises:
        ValueError: no bucket ends there.
    """
    if bound not in histogram.buckets:
        raise ValueError(f"{histogram.name} has no bucket that ends at {bound}")
    within = ", ".join(filter(None, (f'le=~"{_bound(bound)}"', extra)))
    return ratio(_buckets(histogram, by, within), count_rate(histogram, by, extra))


def _buckets(histogram: Histogram, by: str, extra: str = "") -> str:
    name = f"{RAY_PREFIX}{histogram.name}_bucket"
    return f"sum by ({by}) (rate({name}{_selector(histogram, extra)}[{_WINDOW}]))"


def _bound(bound: float) -> str:
    """``1`` and ``1.0``: exporters differ."""
    return f"{bound:g}(\\\\.0)?" if bound == int(bound) else f"{bound:g}"


def _selector(metric: Metric, extra: str = "") -> str:
    matchers = ['namespace=~"$namespace"', 'application=~"$application"']
    if "model" in metric.labels:
        matchers.append('model=~"$model"')
    if metric.source != "front end":
        matchers.append('replica=~"$replica"')
    if extra:
        matchers.append(extra)
    return f"{{{', '.join(matchers)}}}"
