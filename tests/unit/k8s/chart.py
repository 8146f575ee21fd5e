"""The chart as Helm renders it, and the tools that read what comes out."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "k8s/speechlm"
PROFILES = ("cpu", "gpu")

Object = dict[str, Any]
Values = dict[str, Any]


def command(name: str) -> str:
    """The path of a program. Without it the test skips, on CI it fails."""
    path = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if path is None and os.environ.get("CI") != "true":
        pytest.skip(f"{name} is not installed (requirements/debian)")
    assert path is not None, f"{name} is missing"
    return path


@cache
def _profile(name: str) -> str:
    return (CHART / f"values-{name}.yaml").read_text()


def profile(name: str) -> Values:
    """The values of a profile, of which a test may change its copy."""
    values: Values = yaml.safe_load(_profile(name))
    return values


@cache
def _chart() -> helm.Chart:
    return helm.Chart.load(CHART)


def render(values: Values, namespace: str = "speech") -> list[Object]:
    """The objects of a release, those of hooks among them.

    Raises:
        helm.HelmError: the values are not the chart's, or the chart refuses them.
    """
    chart = _chart()
    chart.validate_schema(values)
    files = chart.render(values, name="tts", namespace=namespace)
    texts = [text for path, text in files.items() if path.endswith(".yaml")]
    documents = [yaml.load_all(text, yaml.CSafeLoader) for text in texts]
    return [each for document in documents for each in document if each is not None]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Those of one kind."""
    return [each for each in objects if each["kind"] == kind]


def ray_service(values: Values) -> Object:
    """The ``spec`` of the RayService."""
    (service,) = of_kind(render(values), "RayService")
    spec: Object = service["spec"]
    return spec


def pods(values: Values) -> dict[str, Object]:
    """The ``spec`` of the pods of each role: head, front-end, engine."""
    cluster = ray_service(values)["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    component = "app.kubernetes.io/component"
    templates = [group["template"] for group in groups]
    return {t["metadata"]["labels"][component]: t["spec"] for t in templates}
