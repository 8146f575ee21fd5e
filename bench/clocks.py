"""CPU time of this and other processes, and the tap that notes an engine's steps."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.window import Frame, Step

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

_CPU_CLOCK = 2  # the kind of a process's clock that counts its CPU time


class Clocks:
    """Reads the clocks of this process and of the engine it has started, if any."""

    def __init__(self) -> None:
        self._engine = [
            _cpu_clock(pid)
            for child in multiprocessing.active_children()
            if child.pid is not None
            for pid in _family(child.pid)
        ]

    def frame(self) -> Frame:
        """A frame that is there now."""
        return Frame(time.perf_counter(), *self._cpu())

    def step(self, ended: float, requests: int) -> Step:
        """A step whose output is there now.

        Args:
            ended: when the engine had ended it, by ``time.monotonic``.
        """
        return Step(ended, time.monotonic(), requests, *self._cpu())

    def _cpu(self) -> tuple[float, float]:
        return sum(time.clock_gettime(clock) for clock in self._engine), time.process_time()


class StepTap:
    """Notes the steps of a running engine as their outputs arrive.

    The engine core stamps the output of each step; the times do not depend on how soon the
    client gets round to them.

    Attributes:
        log: steps with outputs so far.
    """

    def __init__(self, engine: AsyncLLM) -> None:
        self.log: list[Step] = []
        self._clocks = Clocks()
        core: Any = engine.engine_core
        self._receive = core.get_output_async
        core.get_output_async = self._note

    async def _note(self) -> Any:
        outputs = await self._receive()
        if outputs.outputs:
            self.log.append(self._clocks.step(outputs.timestamp, len(outputs.outputs)))
        return outputs


def _cpu_clock(pid: int) -> int:
    """Linux's clock id of a process, as ``clock_getcpuclockid`` makes it."""
    return (~pid << 3) | _CPU_CLOCK


def _family(pid: int) -> Iterator[int]:
    """A process and what descends from it."""
    yield pid
    for thread in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
            yield from _family(int(child))
