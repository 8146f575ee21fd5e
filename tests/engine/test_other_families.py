"""Families that no code knows: what their directories say is enough to equal the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_adapter.moss_ttsd import convert
from engine_adapter.tiny import Recipe, make_tiny_of
from tests.engine.harness import MAX_MODEL_LEN, ROOMY, Harness, check, requests_of
from tests.reference.documented import documented_family
from tests.reference.generate import Reference
from tests.reference.moss_ttsd import write_checkpoint
from tests.reference.requests import stable_requests

pytestmark = pytest.mark.engine


def _undelayed(directory: Path) -> Path:
    return make_tiny_of(documented_family(), Recipe(codec="encodec"), directory)


def _moss_ttsd(directory: Path) -> Path:
    convert(write_checkpoint(directory.with_name("published")), directory)
    return directory


@pytest.fixture(params=[_undelayed, _moss_ttsd], ids=["undelayed", "moss-ttsd"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    make: Callable[[Path], Path] = request.param
    return make(tmp_path / "model")


@pytest.fixture
def harness(model: Path) -> Iterator[Harness]:
    started = Harness(str(model), ROOMY)
    yield started
    started.close()


def test_every_id_equals_the_reference(model: Path, harness: Harness) -> None:
    """Plain and guided, greedy and sampled, batched and alone, and from cached prompts."""
    cases = stable_requests(Reference(model, MAX_MODEL_LEN), 12, seed=3).kept
    assert any(case.result.cfg_scale > 1 for case in cases)
    assert any(case.result.finish_reason == "stop" for case in cases)
    requests = requests_of(cases)
    for _ in range(2):
        check(cases, harness.run(harness.together(requests)))
    check(cases[:3], harness.run(harness.one_by_one(requests[:3])))
    assert harness.counters()["joined"] > 0
