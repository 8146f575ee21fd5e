"""Two workers that share every layer write what one does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.harness import ROOMY, Harness, check, requests_of
from tests.reference.requests import Case

pytestmark = [pytest.mark.engine, pytest.mark.chaos]

PARALLEL = dataclasses.replace(ROOMY, tensor_parallel_size=2)


@pytest.fixture
def parallel(model: Path) -> Iterator[Harness]:
    started = Harness(str(model), PARALLEL)
    yield started
    started.close()


# Each has another backbone; OLMo-2 is one that vLLM takes from transformers.
@pytest.mark.parametrize("family", ["bagpiper", "opuslm", "opuslm-dialogue"], indirect=True)
def test_every_id_equals_the_reference(parallel: Harness, cases: list[Case]) -> None:
    some = cases[::2]
    check(some, parallel.run(parallel.together(requests_of(some))))
    assert parallel.counters()["joined"] > 0
