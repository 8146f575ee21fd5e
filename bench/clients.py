"""Clients of the engines: each generates one request to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from bench.plan import GUIDANCE_SCALE, PROMPT_ROWS
from bench.window import MeasurementError
from engine_adapter.spec import StreamSpec

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from engine_adapter.engine import SpeechEngine

T = TypeVar("T")


class Client(Protocol):
    """Generates requests."""

    async def generate(self, number: int, frames: int) -> None:
        """Generates one request.

        Args:
            number: makes the prompt and the seed unique.
            frames: codec frames, or as many tokens as their rows.

        Raises:
            MeasurementError: it was preempted or ended early.
        """
        ...


def prompt_ids(spec: StreamSpec, number: int) -> list[int]:
    """A prompt nobody else has: the first id of the family's own prompt, then text."""
    assert spec.text is not None
    opening = next(iter(spec.prompts.values()))[0]
    assert isinstance(opening, int)
    text = np.random.default_rng(number).integers(
        spec.text.first_id, spec.text.end, PROMPT_ROWS - 1
    )
    return [opening, *text.tolist()]


def generated_rows(spec: StreamSpec, frames: int) -> int:
    """Rows of a request: the one that opens audio, the frames, and their tail."""
    return 1 + spec.audio_rows(frames)


class SpeechClient:
    """Audio from our engine, plain or guided."""

    def __init__(self, engine: SpeechEngine, *, guided: bool) -> None:
        self._engine = engine
        self._scale = GUIDANCE_SCALE if guided else 1.0

    async def generate(self, number: int, frames: int) -> None:
        """See :class:`Client`."""
        from engine_adapter.request import SpeechRequest

        engine = self._engine
        request = SpeechRequest(
            prompt_ids=prompt_ids(engine.spec, number),
            cfg_scale=self._scale,
            seed=number,
            max_frames=frames,
        )
        written = 0
        async for chunk in engine.stream(engine.prepare(request)):
            written += len(chunk.rows)
            if chunk.preemptions:
                raise MeasurementError("a request was preempted; the KV cache is too small")
        if written != generated_rows(engine.spec, frames):
            raise MeasurementError(f"a request of {frames} frames ended after {written} rows")


class StockClient:
    """Text from stock vLLM, sampled as the family samples audio."""

    def __init__(self, engine: AsyncLLM, spec: StreamSpec) -> None:
        self._engine = engine
        self._spec = spec

    async def generate(self, number: int, frames: int) -> None:
        """See :class:`Client`."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = self._spec.sampling["audio"]
        params = SamplingParams(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            max_tokens=generated_rows(self._spec, frames),
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        prompt = cast(Any, {"prompt_token_ids": prompt_ids(self._spec, number)})
        async for _ in self._engine.generate(prompt, params, f"stock-{number}"):
            pass


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs all at once; when one fails, cancels the others and raises its error."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
