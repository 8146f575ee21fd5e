"""Guidance as a client of stock vLLM has to do it: two one-token requests per frame.

The client needs the candidates' log-probabilities of both contexts to mix them, so it can
ask for no more than one token at a time. Only one stream of the model's is obtained: a client
that had to write all of them would need more, so this is the least it costs.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bench.clients import prompt_ids
from bench.plan import GUIDANCE_SCALE, SKIPPED_STEPS
from engine_adapter.spec import StreamSpec

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

# The smallest block of vLLM's CPU attention. A request computes what follows the last
# full cached block again, so small blocks serve this client best.
BLOCK_SIZE = 32
FRAMES = BLOCK_SIZE  # counted: contexts end at every place within a block equally often
SKIPPED_FRAMES = 2  # of every stream, before its frames count


class ClientGuidedClient:
    """Keeps both contexts of a request itself."""

    def __init__(self, engine: AsyncLLM, spec: StreamSpec) -> None:
        self._engine = engine
        self._spec = spec
        self._sampling = spec.sampling["audio"]

    async def rows(self, number: int, frames: int) -> AsyncIterator[int]:
        """Yields 1 per frame; see :class:`bench.clients.Client`."""
        stream, noise = self._spec.streams[0], random.Random(number)
        # The contexts begin as long as those of the other variants are in their windows.
        begun = np.random.default_rng(number).integers(stream.first_id, stream.end, SKIPPED_STEPS)
        written: list[int] = [self._spec.audio_begin, *begun.tolist()]
        conditional = prompt_ids(self._spec, number)
        unconditional = list(self._spec.unconditional_prompt)
        for frame in range(frames):
            name = f"client-{number}-{frame}"
            above, below = await asyncio.gather(
                self._candidates([*conditional, *written], f"{name}-c"),
                self._candidates([*unconditional, *written], f"{name}-u"),
            )
            written.append(choose(above, below, GUIDANCE_SCALE, self._sampling.temperature, noise))
            yield 1

    async def _candidates(self, context: list[int], name: str) -> dict[int, float]:
        """The most likely next ids and their log-probabilities."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=0.0,  # the engine's own draw is not used
            max_tokens=1,
            logprobs=self._sampling.top_k,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = cast(Any, {"prompt_token_ids": context})
        async for output in self._engine.generate(prompt, params, name):
            logprobs = output.outputs[0].logprobs
        return {token: entry.logprob for token, entry in logprobs[0].items()}


def choose(
    conditional: Mapping[int, float],
    unconditional: Mapping[int, float],
    scale: float,
    temperature: float,
    noise: random.Random,
) -> int:
    """Draws one of the conditional candidates by the guided log-probabilities.

    A candidate that is missing among the unconditional ones counts as their least likely.
    """
    least = min(unconditional.values())

    def score(token: int) -> float:
        mixed = scale * conditional[token] + (1 - scale) * unconditional.get(token, least)
        return mixed / temperature - math.log(-math.log(noise.uniform(1e-12, 1 - 1e-12)))

    return max(conditional, key=score)
