"""The chart as Helm renders it, and the tools that read what comes out."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "k8s/speechlm"
PROFILES = ("cpu", "gpu")

Object = dict[str, Any]
Values = dict[str, Any]


def command(name: str) -> str:
    """The path of a program. Without it the test skips, on CI it fails."""
    path = shutil.which(name)
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
