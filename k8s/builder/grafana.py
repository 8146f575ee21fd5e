"""Dashboards as Grafana's JSON: panels on a grid, and the variables that choose what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

GRID_WIDTH = 24
_SCHEMA_VERSION = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}

Kind = Literal["timeseries", "stat", "table"]
Unit = Literal["s", "short", "percentunit", "bytes", "reqps", "ops", "currencyUSD", "none"]


@dataclass(frozen=True)
class Query:
    """One expression of a panel, and how its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        about: what it shows and when it is good, for whoever hovers over its title.
        bad_above, bad_below: where a value turns red.
        width: of the grid's 24 columns.
    """

    title: str
    about: str
    queries: Sequence[Query]
    unit: Unit
    kind: Kind = "timeseries"
    bad_above: float | None = None
    bad_below: float | None = None
    stacked: bool = False
    width: int = 8
    height: int = 8

    def json(self, number: int, x: int, y: int) -> dict[str, Any]:
        """As Grafana has it, with its top left corner at ``x``, ``y`` of the grid."""
        instant = self.kind != "timeseries"
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": _SOURCE,
                    "expr": query.expr,
                    "legendFormat": query.legend or "__auto",
                    "instant": instant,
                    "range": not instant,
                    "format": "table" if self.kind == "table" else "time_series",
                }
                for index, query in enumerate(self.queries)
            ],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
        }

    def _defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {"unit": self.unit}
        steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
        if self.bad_above is not None:
            steps.append({"color": "red", "value": self.bad_above})
        if self.bad_below is not None:
            steps = [{"color": "red", "value": None}, {"color": "green", "value": self.bad_below}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        if self.kind == "timeseries":
            defaults["custom"] = {
                "fillOpacity": 10,
                "showPoints": "never",
                "stacking": {"mode": "normal" if self.stacked else "none"},
                "thresholdsStyle": {"mode": "line" if len(steps) > 1 else "off"},
            }
        return defaults

    def _options(self) -> dict[str, Any]:
        if self.kind == "stat":
            return {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
        if self.kind == "timeseries":
            return {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list"}}
        return {}


@dataclass(frozen=True)
class Variable:
    """One of the fields above a dashboard.

    Attributes:
        query: ``label_values(...)``; "" for a number that is typed in.
        default: of such a number.
    """

    name: str
    query: str = ""
    default: str = ""

    def json(self) -> dict[str, Any]:
        """As Grafana has it."""
        if not self.query:
            chosen = {"text": self.default, "value": self.default}
            return {"name": self.name, "type": "textbox", "query": self.default, "current": chosen}
        return {
            "name": self.name,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": self.query, "refId": self.name},
            "definition": self.query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",  # so that a series without the label is among all
            "current": {"text": ["All"], "value": ["$__all"]},
        }


@dataclass(frozen=True)
class Dashboard:
    """One dashboard: titled sections of panels, which fill the grid from left to right."""

    name: str
    title: str
    about: str
    variables: Sequence[Variable]
    sections: dict[str, Sequence[Panel]] = field(default_factory=dict)

    @property
    def uid(self) -> str:
        """By which other dashboards and links know it."""
        return f"speechlm-{self.name}"

    def json(self) -> dict[str, Any]:
        """As Grafana imports it."""
        source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["speechlm"],
            "schemaVersion": _SCHEMA_VERSION,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "links": [{"type": "dashboards", "tags": ["speechlm"], "title": "speechlm"}],
            "templating": {"list": [source, *(variable.json() for variable in self.variables)]},
            "panels": self._panels(),
        }

    def _panels(self) -> list[dict[str, Any]]:
        panels: list[dict[str, Any]] = []
        y = 0
        for title, section in self.sections.items():
            header = {"x": 0, "y": y, "w": GRID_WIDTH, "h": 1}
            row = {"id": len(panels) + 1, "type": "row", "title": title, "gridPos": header}
            panels.append(row | {"collapsed": False, "panels": []})
            x, y, height = 0, y + 1, 0
            for panel in section:
                if x + panel.width > GRID_WIDTH:
                    x, y, height = 0, y + height, 0
                panels.append(panel.json(len(panels) + 1, x, y))
                x, height = x + panel.width, max(height, panel.height)
            y += height
        return panels
