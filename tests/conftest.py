"""Settings of every test."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Small tensors: a second thread only waits, and waits long where the machine is busy. The
# processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says nothing on a shared machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)  # xdist's own hook reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests, those that share an engine or a service stay together."""
    for item in items:
        if item.get_closest_marker("engine") or item.get_closest_marker("serve"):
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    fixtures: tuple[str, ...] = getattr(item, "fixturenames", ())
    if "service" in fixtures:
        return "service"
    parameters = getattr(item, "callspec", None)
    family = None if parameters is None else parameters.params.get("family")
    return str(family or item.path)
