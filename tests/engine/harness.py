"""Real engines for tests, one per configuration, and the reference's answers to compare."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest

from engine_adapter.engine import EngineConfig, SpeechEngine
from engine_adapter.request import Result, SpeechRequest
from tests.reference.generate import ReferenceRequest
from tests.reference.requests import Case

T = TypeVar("T")

MAX_MODEL_LEN = 512


@dataclass(frozen=True)
class Setup:
    """Engine settings of a test group, the model aside."""

    max_rows: int
    kv_blocks: int
    max_batched_tokens: int
    prefix_cache: bool
    block_size: int = 32
    dtype: str = "float32"
    tensor_parallel_size: int = 1
    quantization: str | None = None
    max_model_len: int = MAX_MODEL_LEN


ROOMY = Setup(max_rows=8, kv_blocks=2000, max_batched_tokens=2048, prefix_cache=True)
# Hardly more blocks than one guided unit needs, an odd number of rows, and a step budget
# that cuts a prompt of 300 ids into a dozen chunks.
STARVED = Setup(max_rows=15, kv_blocks=30, max_batched_tokens=24, prefix_cache=False)
# As starved, but preempted requests may find their own blocks again.
STARVED_CACHED = dataclasses.replace(STARVED, prefix_cache=True)
# The precision of production: ids differ from the float32 reference, nothing else may.
HALF = dataclasses.replace(ROOMY, dtype="bfloat16")

# For what does not depend on the family: the one with the most outputs.
RICHEST = pytest.mark.parametrize("family", ["bagpiper"], indirect=True)


class Harness:
    """One engine and the event loop it lives on."""

    def __init__(self, model: str, setup: Setup) -> None:
        self.setup = setup
        self.engine = SpeechEngine(
            EngineConfig(
                model=model,
                dtype=setup.dtype,
                max_rows=setup.max_rows,
                kv_blocks=setup.kv_blocks,
                block_size=setup.block_size,
                max_batched_tokens=setup.max_batched_tokens,
                max_model_len=setup.max_model_len,
                prefix_cache=setup.prefix_cache,
                tensor_parallel_size=setup.tensor_parallel_size,
                quantization=setup.quantization,
            )
        )
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the engine's loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """Ends the engine."""
        self.engine.shutdown()
        self._runner.close()

    async def together(self, requests: Iterable[SpeechRequest]) -> list[Result]:
        """Generates all requests at once."""
        prepared = [self.engine.prepare(r) for r in requests]
        return list(await asyncio.gather(*(self.engine.generate(p) for p in prepared)))

    async def one_by_one(self, requests: Iterable[SpeechRequest]) -> list[Result]:
        """Generates one request at a time."""
        return [await self.engine.generate(self.engine.prepare(r)) for r in requests]

    def counters(self) -> dict[str, int]:
        """The pair ledger, after checking that nothing is left over and nothing broke."""
        stats = self.run(self.engine.drained())
        if not stats:
            return {}
        assert stats["violations"] == []
        left = ("rows_running", "rows_waiting", "blocks_in_use", "pairs_live", "runner_requests")
        assert {key: stats[key] for key in left} == dict.fromkeys(left, 0)
        pairs: dict[str, int] = stats["pairs"]
        return pairs


def as_speech_request(request: ReferenceRequest) -> SpeechRequest:
    """The same request for the engine."""
    return SpeechRequest(
        prompt_ids=[list(row) for row in request.prompt],
        output=request.output,
        cfg_scale=request.cfg_scale,
        unconditional_ids=request.unconditional_ids,
        seed=request.seed,
        temperature=request.temperature,
        top_k=request.top_k,
        top_p=request.top_p,
        max_frames=request.max_frames if "audio" in request.output else None,
        max_text_tokens=request.max_text_tokens if "text" in request.output else None,
    )


def requests_of(cases: Sequence[Case]) -> list[SpeechRequest]:
    """The cases' requests for the engine."""
    return [as_speech_request(case.request) for case in cases]


def check(cases: Sequence[Case], results: Sequence[Result]) -> None:
    """Every id, code and finish reason equals the reference's."""
    for case, result in zip(cases, results, strict=True):
        expected = case.result
        if result.raw_ids.tolist() != expected.raw_ids:
            pytest.fail(_first_difference(case, result))
        assert result.codes.tolist() == expected.codes
        assert result.finish_reason == expected.finish_reason


def _first_difference(case: Case, result: Result) -> str:
    got, expected = result.raw_ids, np.array(case.result.raw_ids)
    rows = min(len(got), len(expected))
    differs = np.flatnonzero((got[:rows] != expected[:rows]).any(axis=1))
    row = int(differs[0]) if differs.size else rows
    return (
        f"{case.request.output}, scale {case.result.cfg_scale}, margin {case.result.margin:.2e}: "
        f"{len(got)} rows for {len(expected)}, first different row {row}: "
        f"{got[row : row + 1].tolist()} for {expected[row : row + 1].tolist()}"
    )
