"""The engine's own figures as metrics.

The engine core is a process without Ray. It counts, the replica asks it every few seconds, and
what has been added since becomes increases of counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfg_pairing.step_times import BOUNDS
from deployments.metrics import definitions as d
from deployments.metrics import emit

_COUNTERS = (
    (d.PREEMPTIONS, "preemptions"),
    (d.FRAMES, "frames"),
    (d.STEP_TOKENS, "step_tokens"),
    (d.STEP_SECONDS.exact, "step_seconds"),
)
_EVENTS = tuple(dict(labels)["event"] for labels in d.PAIRS.starts)
# A value of each class of durations. Which one only matters to the sums that Ray makes up.
_MIDDLES = tuple((low + high) / 2 for low, high in zip((0.0, *BOUNDS), BOUNDS, strict=False))
_OF_CLASS = (*_MIDDLES, 2 * BOUNDS[-1])


class EngineFigures:
    """Emits what ``SpeechEngine.stats`` returns."""

    def __init__(self, rows: int, kv_blocks: int) -> None:
        """
        Args:
            rows, kv_blocks: that the engine has, which it states only once it has worked.
        """
        self._rows = rows
        self._kv_blocks = kv_blocks
        self._before: Mapping[str, Any] = {}

    def emit(self, stats: Mapping[str, Any]) -> None:
        """
        Args:
            stats: of the same engine as in the last call. Before its first step they are empty.
        """
        pairs, memory = stats.get("pairs", {}), stats.get("gpu_memory")
        emit.put(d.ROWS_RUNNING, stats.get("rows_running", 0))
        emit.put(d.ROWS_WAITING, stats.get("rows_waiting", 0))
        emit.put(d.ROWS_CAPACITY, stats.get("rows_capacity", self._rows))
        emit.put(d.KV_BLOCKS_USED, stats.get("blocks_in_use", 0))
        emit.put(d.KV_BLOCKS_CAPACITY, stats.get("blocks_total", self._kv_blocks))
        emit.put(d.PAIR_ROWS_SPLIT, pairs.get("rows_split", 0))
        emit.put(d.UNGUIDED_FRAMES, pairs.get("unguided_frames", 0))
        if memory is not None:
            emit.put(d.GPU_MEMORY, memory["held"], part="engine")
            emit.put(d.GPU_DEVICE_MEMORY, memory["used"], state="used")
            emit.put(d.GPU_DEVICE_MEMORY, memory["capacity"], state="capacity")
        if pairs:
            self._add(stats)

    def _add(self, stats: Mapping[str, Any]) -> None:
        before, self._before = self._before, stats
        for counter, name in _COUNTERS:
            emit.add(counter, stats[name] - before.get(name, 0))
        pairs, outcomes = before.get("pairs", {}), before.get("outcomes", {})
        for event in _EVENTS:
            emit.add(d.PAIRS, stats["pairs"][event] - pairs.get(event, 0), event=event)
        for outcome, number in stats["outcomes"].items():
            emit.add(d.ENGINE_REQUESTS, number - outcomes.get(outcome, 0), outcome=outcome)
        classes = before.get("step_classes", (0,) * len(_OF_CLASS))
        for seconds, now, then in zip(_OF_CLASS, stats["step_classes"], classes, strict=True):
            emit.count(d.STEP_SECONDS, seconds, now - then)
