"""The dashboards' panels, asked of a real Prometheus."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import RAY_PREFIX, Needs
from tests.serve.prometheus import NAMESPACE, Prometheus
from tests.serve.service_process import ROOT

DASHBOARDS = tuple(
    path.stem for path in sorted((ROOT / "k8s" / "speechlm" / "dashboards").glob("*.json"))
)
OF_NODES = ("ray_node_",)
"""How the names begin of what Ray knows of its nodes where it has a dashboard."""
_VARIABLES = {
    "$namespace": NAMESPACE,
    "$application": ".*",
    "$model": ".*",
    "$replica": ".*",
    "$price": "2.5",
    "$__rate_interval": "5m",
    "$__range": "5m",
}


def needing(needs: Needs) -> tuple[str, ...]:
    """Names, as Prometheus has them, of what only appears with it."""
    return tuple(RAY_PREFIX + metric.name for metric in DEFINITIONS if metric.needs == needs)


def asking(*names: str) -> Iterator[tuple[str, str]]:
    """Titles and expressions of all panels that ask for what begins with one of these names."""
    for dashboard in DASHBOARDS:
        for title, expression in panels(dashboard):
            if any(name in expression for name in names):
                yield title, expression


def panels(dashboard: str) -> Iterator[tuple[str, str]]:
    """Titles of a dashboard's panels, with each of their expressions."""
    path = ROOT / "k8s" / "speechlm" / "dashboards" / f"{dashboard}.json"
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in _VARIABLES.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


def shows(prometheus: Prometheus, expression: str) -> bool:
    """Whether a panel has data."""
    return any(math.isfinite(value) for _, value in prometheus.query(expression))
