"""Official checkpoints, converted and served: every id equals what the official file gives."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deployments.cli import main
from tests.engine.harness import MAX_MODEL_LEN, ROOMY, Harness, check, requests_of
from tests.official.bagpiper import write_bagpiper
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.opuslm import write_opuslm
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import official_model
from tests.reference.generate import Reference
from tests.reference.requests import stable_requests

pytestmark = pytest.mark.engine

WRITERS: tuple[Callable[[Path], OfficialCheckpoint], ...] = (
    write_bagpiper,
    write_opuslm,
    write_opuslm_dialogue,
)
# These logits are twice as large as those of the other tiny models.
THRESHOLD = 5e-5


@dataclass(frozen=True)
class Converted:
    """An official checkpoint, and an engine that serves what the command made of it."""

    checkpoint: OfficialCheckpoint
    harness: Harness


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__)
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Converted]:
    folder = tmp_path_factory.mktemp("official")
    checkpoint: OfficialCheckpoint = request.param(folder)
    out = folder / "served"
    assert main([*checkpoint.arguments, "--out", str(out)]) == 0
    harness = Harness(str(out), ROOMY)
    yield Converted(checkpoint, harness)
    harness.close()
    gc.collect()


def test_ids_equal_those_of_the_official_file(converted: Converted) -> None:
    reference = Reference(official_model(converted.checkpoint), max_model_len=MAX_MODEL_LEN)
    cases = stable_requests(reference, 8, seed=3, threshold=THRESHOLD).kept
    results = converted.harness.run(converted.harness.together(requests_of(cases)))
    check(cases, results)
    assert {case.request.output for case in cases} == set(reference.spec.prompts)
    assert any(case.result.finish_reason == "stop" for case in cases)
    converted.harness.counters()
