"""Settings of every test."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

# Small tensors: a second thread only waits, and waits long where the machine is busy. The
# processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says nothing on a shared machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist loadscope``: those that share an engine or a service stay together."""
    if config.getvalue("dist") != "loadscope":
        return None
    from tests.sharing import Sharing

    return Sharing(config, log)
