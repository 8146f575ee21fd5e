"""``python -m bench.host``: the worker's own work per step, without the forward pass.

Splits ``SpeechStep.sample`` into the heads' product, sampling, and the rest (phases,
masks, guidance, history), on random hidden states and random heads. Times are CPU time
of all threads together: on one thread what a quiet machine would take, also on a busy one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from bench.machine import engine_threads
from bench.plan import GUIDANCE_SCALE, PROMPT_ROWS
from bench.report import table
from engine_adapter import step as step_module
from engine_adapter.families import FAMILIES
from engine_adapter.heads import CodecHeads
from engine_adapter.spec import StreamSpec
from engine_adapter.step import SpeechStep
from engine_adapter.wire import WireRequest

_ROWS = (1, 8, 32, 128, 256, 512)
_FAMILIES = ("demo", "bagpiper")
_HIDDEN = 256
_ROUNDS, _STEPS, _WARM_UP_STEPS = 5, 8, 3
_MAX_LENGTH = 1024


@dataclass(frozen=True)
class Split:
    """Milliseconds of CPU time per step."""

    total: float
    heads: float
    sampling: float

    @property
    def rest(self) -> float:
        """What is neither."""
        return self.total - self.heads - self.sampling


@dataclass
class _Model:
    """The heads alone; no request here writes text."""

    codec_heads: CodecHeads

    def text_logits(self, hidden: Tensor) -> Tensor:
        raise NotImplementedError


@dataclass
class _Stopwatch:
    """Seconds of CPU time spent in wrapped functions, by name."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            result = function(*args, **kwargs)
            self.seconds[name] += time.process_time() - begun
            return result

        return timed


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one table per family."""
    parser = argparse.ArgumentParser(prog="python -m bench.host", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=_ROWS)
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=_FAMILIES)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args(arguments)
    torch.set_num_threads(engine_threads())
    print(f"hidden {_HIDDEN}, {options.dtype}, {engine_threads()} threads; CPU ms per step")
    for family in options.family:
        head = [family, "rows", "total", "heads", "sampling", "rest"]
        lines = [
            [name, str(rows), *(f"{ms:.2f}" for ms in (s.total, s.heads, s.sampling, s.rest))]
            for rows, guided in itertools.product(options.rows, (False, True))
            if not (guided and rows % 2)
            for name in ["guided" if guided else "plain"]
            for s in [profile(FAMILIES[family], rows, guided, getattr(torch, options.dtype))]
        ]
        print("\n" + table(head, lines), flush=True)
    return 0


@torch.inference_mode()
def profile(spec: StreamSpec, rows: int, guided: bool, dtype: torch.dtype) -> Split:
    """The median step of several rounds, every row in an audio phase."""
    heads = random_heads(spec, dtype, _HIDDEN)
    step = SpeechStep(spec, rows, _MAX_LENGTH)
    ids = list(_add_requests(step, spec, rows, guided))
    discard = np.zeros(rows, dtype=bool)
    hidden = [torch.randn(rows, _HIDDEN).to(dtype) for _ in range(_STEPS)]

    def run(steps: Sequence[Tensor]) -> float:
        begun = time.process_time()
        for states in steps:
            step.sample(ids, discard, states, _Model(heads))
        return 1000 * (time.process_time() - begun) / len(steps)

    splits = []
    with _timed(heads) as watch:
        run(hidden[:_WARM_UP_STEPS])  # the first step opens audio
        for _ in range(_ROUNDS):
            watch.seconds.clear()
            total = run(hidden)
            parts = {name: 1000 * s / _STEPS for name, s in watch.seconds.items()}
            splits.append(Split(total, parts["heads"], parts["sampling"]))
    middle = median(split.total for split in splits)
    return next(split for split in splits if split.total == middle)


@contextmanager
def _timed(heads: CodecHeads) -> Iterator[_Stopwatch]:
    watch = _Stopwatch()
    with (
        patch.object(heads, "forward", watch.around("heads", heads.forward)),
        patch.object(step_module, "sample", watch.around("sampling", step_module.sample)),
    ):
        yield watch


def random_heads(
    spec: StreamSpec, dtype: torch.dtype, width: int, device: str = "cpu"
) -> CodecHeads:
    """Heads from which the end of audio is never drawn.

    Args:
        width: of the hidden states.
    """
    heads = CodecHeads(spec, width, dtype)
    head = torch.randn(spec.vocab_size, width, dtype=dtype) * 1.2 * width**-0.5
    head[list(spec.audio_end_ids)] = 0  # never among the likeliest, so no request ends
    heads.take_head(head)
    heads.stream_embedding.data.normal_()
    heads.finish_loading()
    return heads.to(device)


def _add_requests(step: SpeechStep, spec: StreamSpec, rows: int, guided: bool) -> Iterator[str]:
    """Fills the step; a guided request's rows are next to each other."""
    sampling: dict[str, tuple[float, int, float]] = {
        m: (s.temperature, s.top_k, s.top_p) for m, s in spec.sampling.items()
    }
    for number in range(rows // 2 if guided else rows):
        leader = f"request-{number}"
        wire = WireRequest(
            output="audio",
            seed=number,
            cfg_scale=GUIDANCE_SCALE if guided else 1.0,
            room=_MAX_LENGTH,
            sampling=sampling,
        )
        step.add(leader, PROMPT_ROWS, wire)
        yield leader
        if guided:
            follower = WireRequest(
                output="audio",
                seed=number,
                cfg_scale=GUIDANCE_SCALE,
                room=_MAX_LENGTH,
                sampling=sampling,
                leader=leader,
            )
            step.add(f"{leader}-unconditional", PROMPT_ROWS, follower)
            yield f"{leader}-unconditional"


if __name__ == "__main__":
    sys.exit(main())
