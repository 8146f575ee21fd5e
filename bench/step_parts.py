"""What the parts of an engine's steps took, noted where the steps are made.

The functions are called in the worker, by vLLM's ``collective_rpc``.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.window import MeasurementError

if TYPE_CHECKING:
    from engine_adapter.engine import SpeechEngine

_NOTES = "bench_notes"
_PARTS = ("forward", "heads")


def allow() -> None:
    """To be called before the engine is made: it will be asked to run functions of this module."""
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"


async def watch(engine: SpeechEngine) -> None:
    """Has the engine note its parts from now on."""
    await _vllm(engine).collective_rpc(_watch)


async def parts(engine: SpeechEngine, rows: int) -> dict[str, float]:
    """``forward`` and ``heads``: milliseconds of the process's CPU time, the median of the calls
    for ``rows`` rows since the last call of this function.

    Raises:
        MeasurementError: there was none.
    """
    (notes,) = await _vllm(engine).collective_rpc(_taken)
    spent = {name: [s for count, s in notes[name] if count == rows] for name in _PARTS}
    if not all(spent.values()):
        raise MeasurementError(f"no step had {rows} rows")
    return {name: 1000 * median(seconds) for name, seconds in spent.items()}


def _vllm(engine: SpeechEngine) -> Any:
    return engine._engine


def _watch(worker: Any) -> None:
    model = worker.get_model()
    notes: dict[str, list[tuple[int, float]]] = defaultdict(list)
    model.forward = _timed(model.forward, notes["forward"])
    model.codec_heads.forward = _timed(model.codec_heads.forward, notes["heads"])
    setattr(worker, _NOTES, notes)


def _taken(worker: Any) -> dict[str, list[tuple[int, float]]]:
    notes = getattr(worker, _NOTES)
    taken = {name: list(notes[name]) for name in _PARTS}
    for name in _PARTS:
        notes[name].clear()
    return taken


def _timed(function: Callable[..., Any], notes: list[tuple[int, float]]) -> Callable[..., Any]:
    """Notes how many rows the first argument has, and the time."""

    def timed(*args: Any, **kwargs: Any) -> Any:
        begun = time.process_time()
        result = function(*args, **kwargs)
        spent = time.process_time() - begun
        notes.append((len(next(chain(args, kwargs.values()))), spent))
        return result

    return timed
