"""Guidance as two rows that the engine does not know to be a pair, when blocks run out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.checkpoints import Checkpoints, make_checkpoints
from bench.clients import StockClient, prompt_ids
from bench.document import About
from bench.engines import EngineSettings, speech_engine, stock_engine
from bench.findings import Findings, Row, Table, Verdict
from bench.machine import engine_threads
from bench.plan import GUIDANCE_SCALE
from bench.setting import Setting

if TYPE_CHECKING:
    from engine_adapter.engine import SpeechEngine
    from engine_adapter.request import Result

_BLOCK = 32  # rows; the smallest of vLLM's CPU attention
_LONGEST = 384  # rows of a request; vLLM wants blocks for one such
_JITTER = 2  # rows that two halves may differ by as their messages arrive one after the other

ABOUT = About(
    "Pairs that are not atomic",
    """
Guided requests with far fewer KV blocks than all of them need, so that some are preempted.

- *independent rows*: two stock requests per guided one, as an engine without pairs would run the
  conditional and the unconditional context. Each is scheduled, and preempted, by itself. A frame is
  *alone* if the other half was more than 2 rows behind when it came: there was nothing at the same
  place to mix it with. From the first of them on a request is *spoilt*: either its frames are
  unguided, or they are mixed with another place of the other context.
- *atomic pairs*: this engine. A request is *spoilt* if its ids differ from those that it has alone,
  with all blocks for itself.
""",
)


@dataclass
class Halves:
    """How far both halves of a request have come, message by message.

    Attributes:
        rows: of either half.
        alone: rows that came while the other half was behind.
        first_alone: rows that the half had when the first of them came; None: none did.
        furthest: the largest difference.
    """

    rows: list[int] = field(default_factory=lambda: [0, 0])
    alone: int = 0
    first_alone: int | None = None
    furthest: int = 0

    def add(self, half: int, rows: int) -> None:
        """Notes a message of one half."""
        self.rows[half] += rows
        ahead = self.rows[half] - self.rows[1 - half]
        self.furthest = max(self.furthest, ahead)
        if ahead > _JITTER:
            self.alone += rows
            if self.first_alone is None:
                self.first_alone = self.rows[half]


def measure(setting: Setting) -> Findings:
    """Both, with the same blocks."""
    pairs, frames = setting.choose((8, 128), (16, 256))
    # Half of what all rows need at their ends.
    blocks = pairs * -(-(32 + frames + 16) // _BLOCK)
    with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as folder:
        checkpoints = make_checkpoints(Path(folder))
        settings = EngineSettings("float32", 2 * pairs, engine_threads())
        halves = asyncio.run(_independent(checkpoints, settings, pairs, frames, blocks))
        together, alone = asyncio.run(_atomic(checkpoints, settings, pairs, frames, blocks))
    return findings(halves, together, alone, blocks)


async def _independent(
    checkpoints: Checkpoints, settings: EngineSettings, pairs: int, frames: int, blocks: int
) -> list[Halves]:
    with stock_engine(
        checkpoints.stock,
        settings,
        block_size=_BLOCK,
        num_gpu_blocks_override=blocks,
        max_model_len=_LONGEST,
    ) as engine:
        client = StockClient(engine, checkpoints.spec)
        found = [Halves() for _ in range(pairs)]

        async def follow(pair: int, half: int) -> None:
            async for rows in client.rows(2 * pair + half, frames):
                found[pair].add(half, rows)

        await asyncio.gather(*(follow(pair, half) for pair in range(pairs) for half in (0, 1)))
    return found


async def _atomic(
    checkpoints: Checkpoints, settings: EngineSettings, pairs: int, frames: int, blocks: int
) -> tuple[list[Result], list[Result]]:
    with speech_engine(
        checkpoints.speech,
        settings,
        block_size=_BLOCK,
        kv_blocks=blocks,
        max_model_len=_LONGEST,
    ) as engine:
        numbers = range(pairs)
        together = await asyncio.gather(*(_speak(engine, n, frames) for n in numbers))
        return together, [await _speak(engine, number, frames) for number in numbers]


async def _speak(engine: SpeechEngine, number: int, frames: int) -> Result:
    from engine_adapter.request import SpeechRequest

    request = SpeechRequest(
        prompt_ids=prompt_ids(engine.spec, number),
        cfg_scale=GUIDANCE_SCALE,
        seed=number,
        max_frames=frames,
    )
    return await engine.generate(engine.prepare(request))


def findings(
    halves: Sequence[Halves], together: Sequence[Result], alone: Sequence[Result], blocks: int
) -> Findings:
    """Both ways side by side."""
    rows = sum(sum(pair.rows) for pair in halves) // 2
    spoilt = [pair for pair in halves if pair.first_alone is not None]
    after = sum(max(pair.rows) - (pair.first_alone or 0) for pair in spoilt)
    different = [
        int((a.raw_ids != b.raw_ids).any(axis=1).sum())
        if a.raw_ids.shape == b.raw_ids.shape
        else max(len(a.raw_ids), len(b.raw_ids))
        for a, b in zip(together, alone, strict=True)
    ]
    table: list[Row] = [
        {
            "guidance by": "independent rows",
            "requests": len(halves),
            "preemptions": None,
            "spoilt requests": len(spoilt),
            "rows": rows,
            "rows alone": sum(pair.alone for pair in halves),
            "spoilt rows": after,
            "furthest apart": max(pair.furthest for pair in halves),
        },
        {
            "guidance by": "atomic pairs",
            "requests": len(together),
            "preemptions": sum(result.preemptions for result in together),
            "spoilt requests": int(np.count_nonzero(different)),
            "rows": sum(len(result.raw_ids) for result in together),
            "rows alone": 0,
            "spoilt rows": sum(different),
            "furthest apart": 0,
        },
    ]
    preempted = float(sum(result.preemptions for result in together))
    return Findings(
        [Table(f"{blocks} blocks of {_BLOCK} rows for all", table)],
        [
            Verdict("spoilt rows, atomic pairs", float(sum(different)), at_most=0.0),
            Verdict("preemptions of them, or nothing is shown", preempted, at_least=1.0),
        ],
        {"halves": [vars(pair) for pair in halves], "different rows": different},
    )
