"""Fixtures shared by the engine tests: models, reference answers, and one engine a setup."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_adapter.families import FAMILIES
from engine_adapter.tiny import make_tiny
from tests.engine.harness import MAX_MODEL_LEN, Harness, Setup
from tests.reference.generate import Reference
from tests.reference.requests import Case, stable_requests

os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


@pytest.fixture(scope="session", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    """Each family in turn; tests of one family run together."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def model(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The family's tiny checkpoint."""
    return make_tiny(family, tmp_path_factory.mktemp(family) / "model")


@pytest.fixture(scope="session")
def reference(model: Path) -> Reference:
    """The slow implementation on the same checkpoint."""
    return Reference(model, max_model_len=MAX_MODEL_LEN)


@pytest.fixture(scope="session")
def cases(reference: Reference) -> list[Case]:
    """32 mixed requests and what the reference makes of them."""
    return stable_requests(reference, 32, seed=7).kept


@pytest.fixture(scope="session")
def harness_for(model: Path) -> Iterator[Callable[[Setup], Harness]]:
    """Starts an engine for a setup, once; all end with the family."""
    started: dict[Setup, Harness] = {}

    def start(setup: Setup) -> Harness:
        if setup not in started:
            started[setup] = Harness(str(model), setup)
        return started[setup]

    yield start
    for harness in started.values():
        harness.close()
