"""The names under which Prometheus sees the service's metrics."""

from deployments.metrics.definitions import DEFINITIONS

EXPORTED = frozenset(name for metric in DEFINITIONS for name in metric.exported)
"""All series that Prometheus may see of them."""
