"""Wall time, and CPU time of other processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.window import Reading

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

    def read(self) -> Reading:
        """All clocks now, in seconds."""
        engine = sum(time.clock_gettime(clock) for clock in self._engine)
        return Reading(time.perf_counter(), engine, time.process_time())


def _cpu_clock(pid: int) -> int:
    """Linux's clock id of a process, as ``clock_getcpuclockid`` makes it."""
    return (~pid << 3) | _CPU_CLOCK


def _family(pid: int) -> Iterator[int]:
    """A process and what descends from it."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError):  # a thread may have ended meanwhile
            for child in children.read_text().split():
                yield from _family(int(child))
