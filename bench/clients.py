"""Clients of the engines: each yields, message by message, how many rows arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from bench.clocks import Clocks
from bench.plan import GUIDANCE_SCALE, PROMPT_ROWS
from bench.window import MeasurementError, Trajectory
from engine_adapter.spec import StreamSpec

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from engine_adapter.engine import SpeechEngine


class Client(Protocol):
    """Generates one request."""

    def rows(self, number: int, frames: int) -> AsyncIterator[int]:
        """Yields the new rows of each message.

        Args:
            number: makes the prompt and the seed unique.
            frames: codec frames, or as many tokens as their rows.
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

    async def rows(self, number: int, frames: int) -> AsyncIterator[int]:
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
            yield len(chunk.rows)
        if written != generated_rows(engine.spec, frames):
            raise MeasurementError(f"a request of {frames} frames ended after {written} rows")


class StockClient:
    """Text from stock vLLM, sampled as the family samples audio."""

    def __init__(self, engine: AsyncLLM, spec: StreamSpec) -> None:
        self._engine = engine
        self._spec = spec

    async def rows(self, number: int, frames: int) -> AsyncIterator[int]:
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
        async for output in self._engine.generate(prompt, params, f"stock-{number}"):
            yield len(output.outputs[0].token_ids)


async def collect(client: Client, numbers: Sequence[int], frames: int) -> list[Trajectory]:
    """Runs requests at once and notes when their rows arrive; raises what the first raised."""
    clocks = Clocks()

    async def follow(number: int) -> Trajectory:
        trajectory = Trajectory()
        async for rows in client.rows(number, frames):
            trajectory.add(clocks.read(), rows)
        return trajectory

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(follow(number)) for number in numbers]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
