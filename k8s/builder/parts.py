"""What the dashboards share: their variables, and panels of one shape."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.metrics import definitions as m
from deployments.metrics.kinds import RAY_PREFIX, Histogram
from k8s.builder.expressions import quantile
from k8s.builder.grafana import Panel, Query, Unit, Variable

_CAPACITY = f"{RAY_PREFIX}{m.REPLICA_CAPACITY.name}"
_CHOSEN = 'namespace=~"$namespace", application=~"$application"'
VARIABLES = (
    Variable("namespace", f"label_values({_CAPACITY}, namespace)"),
    Variable("application", f'label_values({_CAPACITY}{{namespace=~"$namespace"}}, application)'),
    Variable("model", f"label_values({_CAPACITY}{{{_CHOSEN}}}, model)"),
    Variable("replica", f'label_values({_CAPACITY}{{{_CHOSEN}, model=~"$model"}}, replica)'),
)


def quantiles(histogram: Histogram, by: str = "model", extra: str = "") -> Sequence[Query]:
    """Median, p95 and p99, one series per value of the label ``by``."""
    return [
        Query(quantile(q, histogram, by, extra), f"{{{{{by}}}}} p{q * 100:g}")
        for q in (0.5, 0.95, 0.99)
    ]


def per_replica(expr: str) -> Sequence[Query]:
    """One expression by ``replica``, a series for each."""
    return [Query(expr, "{{replica}}")]


def stat(
    title: str,
    about: str,
    expr: str,
    unit: Unit,
    bad_above: float | None = None,
    bad_below: float | None = None,
) -> Panel:
    """A small panel with one number per series, red where it is bad."""
    return Panel(
        title,
        about,
        [Query(expr)],
        unit,
        "stat",
        bad_above=bad_above,
        bad_below=bad_below,
        width=4,
        height=5,
    )
