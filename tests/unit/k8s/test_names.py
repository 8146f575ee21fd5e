"""Dashboards and alerts ask for what the service exports, and lead to what the runbook says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import SERVE_LABELS, Histogram
from k8s.builder.__main__ import generated
from tests.exported import EXPORTED
from tests.promql import asked, filled_in
from tests.unit.k8s.chart import CHART, ROOT, of_kind, profile, render

DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
RUNBOOK = ROOT / "docs/runbook.md"
# Labels that Prometheus adds where it finds a pod, or anything else.
TARGET = {"namespace", "pod", "instance", "job"}
# Ray's own, and what they are labelled with beside the target.
RAYS_OWN = {
    "ray_node_cpu_utilization": set(),
    "ray_node_mem_used": set(),
    "ray_node_mem_total": set(),
    "ray_serve_deployment_status": {"application", "deployment"},
    "ray_serve_autoscaling_desired_replicas": {"application", "deployment"},
}


@cache
def rules() -> list[dict[str, Any]]:
    """All rules of the chart."""
    groups = yaml.safe_load((CHART / "rules/speechlm.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def labels_of(series: str) -> set[str]:
    """Labels that a series can have; an unknown series has none to select by."""
    if series in RAYS_OWN:
        return TARGET | RAYS_OWN[series]
    for rule in rules():
        if rule.get("record") == series:
            return set(asked(rule["expr"]).grouped)
    for metric in DEFINITIONS:
        if series in metric.exported:
            le = {"le"} if isinstance(metric, Histogram) else set()
            return TARGET | set(SERVE_LABELS) | set(metric.labels) | le
    raise AssertionError(f"nobody exports {series}")


def check(expression: str) -> set[str]:
    """Checks that its series and labels exist, and returns the labels of its result."""
    needs = asked(expression)
    assert needs.selected, f"asks for nothing: {expression}"
    everywhere = set[str]().union(*(labels_of(series) for series, _ in needs.selected))
    for series, labels in needs.selected:
        assert labels <= labels_of(series), f"{series} has no {labels - labels_of(series)}"
    assert needs.grouped <= everywhere, f"{needs.grouped - everywhere}: {expression}"
    return set(needs.grouped) or everywhere


def panels(path: Path) -> Iterator[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    yield from (p for p in json.loads(path.read_text())["panels"] if p["type"] != "row")


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(path: Path) -> None:
    assert path.read_text() == generated()[path], "run: .venv/bin/python -m k8s.builder"


def test_nothing_else_lies_among_the_dashboards() -> None:
    assert set(DASHBOARDS) <= generated().keys()


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_ask_for_what_is_exported(path: Path) -> None:
    for panel in panels(path):
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            kept = check(filled_in(target["expr"]))
            named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert named <= kept | TARGET, f"{panel['title']}: {target['legendFormat']}"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_variables_ask_for_what_is_exported(path: Path) -> None:
    variables = json.loads(path.read_text())["templating"]["list"]
    names = {variable["name"] for variable in variables}
    assert {"namespace", "application", "model", "replica"} <= names
    for variable in variables:
        if variable["type"] == "query":
            query = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert query is not None
            ((series, labels),) = asked(filled_in(query[1])).selected
            assert labels | {query[2]} <= labels_of(series)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_fill_the_grid_and_no_two_overlap(path: Path) -> None:
    board = json.loads(path.read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]


def test_every_metric_is_on_a_dashboard() -> None:
    """What nobody looks at need not be measured."""
    texts = " ".join(path.read_text() for path in DASHBOARDS)
    assert [m.name for m in DEFINITIONS if m.name not in texts] == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_rules_ask_for_what_is_exported(rule: dict[str, Any]) -> None:
    kept = check(rule["expr"])
    texts = " ".join(rule.get("annotations", {}).values())
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= kept


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_rules_ask_for_one_release_only(rule: dict[str, Any]) -> None:
    """Otherwise two releases would tell each other's troubles, and hide that one is gone."""
    for series, labels in asked(rule["expr"]).selected:
        assert "namespace" in labels, series


def test_rules_of_a_release_ask_for_its_namespace() -> None:
    (rule,) = of_kind(render(profile("cpu"), namespace="voices"), "PrometheusRule")
    text = str(rule["spec"])
    assert 'namespace="voices"' in text
    assert 'namespace="speech"' not in text


def test_every_alert_leads_to_its_page_in_the_runbook() -> None:
    headings = re.findall(r"^## (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    urls = {rule["annotations"]["runbook_url"] for rule in rules() if "alert" in rule}
    assert {url.partition("#")[0] for url in urls} == {"docs/runbook.md"}
    pages = {url.partition("#")[2] for url in urls}
    assert pages <= anchors


def test_an_installation_says_where_its_runbook_is() -> None:
    url = "https://wiki.example.org/speech/runbook"
    (rule,) = of_kind(render(profile("cpu") | {"monitoring": {"runbook": url}}), "PrometheusRule")
    alerts = [r for group in rule["spec"]["groups"] for r in group["rules"] if "alert" in r]
    assert alerts
    assert all(a["annotations"]["runbook_url"].startswith(f"{url}#") for a in alerts)


def test_dashboards_travel_as_config_maps() -> None:
    maps = [
        each
        for each in of_kind(render(profile("cpu")), "ConfigMap")
        if each["metadata"]["labels"].get("grafana_dashboard") == "1"
    ]
    texts = [text for each in maps for text in each["data"].values()]
    uids = sorted(json.loads(text)["uid"] for text in texts)
    assert uids == sorted(json.loads(path.read_text())["uid"] for path in DASHBOARDS)


def test_names_of_rays_own_metrics_are_those_of_the_installed_ray() -> None:
    files = distribution("ray").files or []
    sources = (
        "ray/dashboard/modules/reporter/reporter_agent.py",
        "ray/serve/_private/autoscaling_state.py",
        "ray/serve/_private/deployment_state.py",
    )
    texts = [file.read_text() for file in files if str(file) in sources]
    assert len(texts) == len(sources)
    for name in RAYS_OWN:
        assert any(f'"{name.removeprefix("ray_")}"' in text for text in texts), name


def test_what_rules_watch_is_not_lost() -> None:
    """No alert on a metric that was removed: its series would never come."""
    watched = {s for rule in rules() for s, _ in asked(rule["expr"]).selected}
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert watched <= EXPORTED | recorded | RAYS_OWN.keys()
