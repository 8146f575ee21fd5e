"""The list of metrics keeps Prometheus's conventions, and can be exported by both sinks."""

import re

import pytest

from deployments.metrics import emit
from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import SERVE_LABELS, Counter, Gauge, Histogram, Metric
from deployments.metrics.sinks import PrometheusSink
from tests.exported import EXPORTED

UNITS = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "_(ratio|factor)", "info": "_info"}


def test_names_are_unique() -> None:
    names = [metric.name for metric in DEFINITIONS]
    assert len(set(names)) == len(names) > 40


@pytest.mark.parametrize("metric", DEFINITIONS, ids=lambda metric: metric.name)
def test_names_follow_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"speechlm(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == isinstance(metric, Counter)
    stem = metric.name.removesuffix("_total")
    if metric.unit != "count":
        assert re.search(f"{UNITS[metric.unit]}$", stem)
    assert not re.search(r"_(count|sum|bucket|created)$", stem)
    assert metric.help.endswith(".")
    assert len(metric.help.splitlines()) == 1


@pytest.mark.parametrize("metric", DEFINITIONS, ids=lambda metric: metric.name)
def test_labels_leave_those_of_serve_alone(metric: Metric) -> None:
    assert not set(metric.labels) & {*SERVE_LABELS, "route", "le"}
    if isinstance(metric, Counter):
        assert all(set(dict(labels)) <= set(metric.labels) for labels in metric.starts)


@pytest.mark.parametrize("metric", [m for m in DEFINITIONS if isinstance(m, Histogram)])
def test_buckets_ascend_from_above_0(metric: Histogram) -> None:
    assert metric.buckets[0] > 0
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_every_metric_can_be_exported_under_the_names_it_states() -> None:
    sink = PrometheusSink()
    with emit.using(sink):
        for metric in DEFINITIONS:
            labels = dict.fromkeys(metric.labels, "x")
            if isinstance(metric, Counter):
                emit.add(metric, 1, **labels)
            elif isinstance(metric, Histogram):
                emit.observe(metric, 1, **labels)
            else:
                assert isinstance(metric, Gauge)
                emit.put(metric, 1, **labels)
    found = set(re.findall(r"^(speechlm\w+)", sink.text(), re.M))
    stated = {name.removeprefix("ray_") for name in EXPORTED}
    assert {name for name in found if not name.endswith("_created")} == stated
