"""How near the engine's numbers are to an independent implementation's."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bench import recording
from bench.document import About
from bench.engines import EngineSettings, speech_engine
from bench.findings import Findings, Row, Table, Verdict
from bench.machine import engine_threads
from bench.setting import Setting
from engine_adapter.families import FAMILIES
from engine_adapter.heads import group_streams
from engine_adapter.spec import StreamSpec
from engine_adapter.tiny import make_tiny

if TYPE_CHECKING:
    from engine_adapter.request import Result

DTYPES = ("float32", "bfloat16")
_FRAMES = 24
_LIMIT = 1e-4  # root mean square error of float32 logits, which are of the order of 1

ABOUT = About(
    "Numerical alignment",
    """
The engine against `tests/reference`, which shares no code with it that computes anything: plain
transformers, float32, one request at a time. Tiny random checkpoints of every family, requests for
audio at the family's default sampling, one at a time. *first difference* is the first row whose
sampled ids are not the reference's (with seeded noise, so equal logits give equal ids); *same* the
requests without any. The error of the logits is taken at equal contexts: the reference reads the
rows that the engine wrote. For every row the root of the mean square over all candidates of all
streams; *mean* and *largest* are over rows. *logits* is the root mean square of the logits.
""",
)


@dataclass(frozen=True)
class Aligned:
    """One request.

    Attributes:
        first: the first row that differs; None: none does.
        errors: root mean square error of the logits of each audio row.
        sizes: root mean square of the reference's logits there.
    """

    first: int | None
    errors: Sequence[float]
    sizes: Sequence[float]


def measure(setting: Setting) -> Findings:
    """Every family of the profile in both precisions."""
    recording.allow()
    families = setting.choose(("bagpiper",), tuple(FAMILIES))
    rows: list[Row] = []
    raw = {}
    for family in families:
        with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as folder:
            model = make_tiny(family, Path(folder) / "model")
            for dtype in DTYPES:
                aligned = asyncio.run(_aligned(model, dtype, setting.choose(3, 12), Path(folder)))
                rows.append(row(family, dtype, aligned))
                raw[f"{family}, {dtype}"] = [vars(each) for each in aligned]
    return findings(rows, raw)


async def _aligned(model: Path, dtype: str, count: int, folder: Path) -> list[Aligned]:
    from engine_adapter.request import SpeechRequest

    settings = EngineSettings(dtype, 4, engine_threads())
    prompts = [_prompt(StreamSpec.load(model), number) for number in range(count)]
    with speech_engine(model, settings) as engine:
        await recording.start(engine)
        answers = []
        for number, prompt in enumerate(prompts):
            request = SpeechRequest(
                prompt_ids=prompt, cfg_scale=1.0, seed=number, max_frames=_FRAMES
            )
            result = await engine.generate(engine.prepare(request))
            answers.append((result, await recording.take(engine, folder)))
    return [
        compare(model, prompt, number, result, logits)
        for number, (prompt, (result, logits)) in enumerate(zip(prompts, answers, strict=True))
    ]


def _prompt(spec: StreamSpec, number: int) -> list[int]:
    """Text ids of its own behind the first id of the family's prompt for audio."""
    assert spec.text is not None
    opening = [item for item in spec.prompts["audio"][:1] if isinstance(item, int)]
    text = np.random.default_rng(number).integers(spec.text.first_id, spec.text.end, 12)
    return [*opening, *text.tolist()]


@torch.inference_mode()
def compare(
    model: Path, prompt: Sequence[int], seed: int, result: Result, logits: Sequence[Tensor]
) -> Aligned:
    """One answer of the engine, and the logits it drew it from, beside the reference."""
    from tests.reference.generate import Reference, ReferenceRequest, plain_rows
    from tests.reference.model import Model

    reference = Model(model)
    spec = reference.spec
    rows = plain_rows(prompt, spec.num_streams)
    wanted = ReferenceRequest(rows, cfg_scale=1.0, seed=seed, max_frames=_FRAMES)
    expected = np.array(Reference(reference).generate(wanted).raw_ids)
    context = reference.context()
    context.append(rows)
    context.append([result.raw_ids[0].tolist()])
    errors, sizes = [], []
    # Behind row 0, which opens audio, each row was drawn from the logits of a step.
    for written, engine_logits in zip(result.raw_ids[1:], logits, strict=False):
        ours, theirs = by_id(spec, engine_logits[0], reference_logits(context, spec))
        errors.append(float((ours - theirs).square().mean().sqrt()))
        sizes.append(float(theirs.square().mean().sqrt()))
        context.append([written.tolist()])
    return Aligned(first_difference(result.raw_ids, expected), errors, sizes)


def reference_logits(context: object, spec: StreamSpec) -> list[tuple[Tensor, Tensor]]:
    """Per stream the ids that may be sampled and their logits, after all rows of a context."""
    from tests.reference.model import Context

    assert isinstance(context, Context)
    model, hidden = context._model, context.hidden()
    return [
        (model.audio_ids[stream], model.audio_logits(hidden, stream))
        for stream in range(spec.num_streams)
    ]


def by_id(
    spec: StreamSpec, logits: Tensor, reference: Sequence[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Both sides' logits in one order, of all candidates of all streams."""
    ours, theirs = [], []
    start = 0
    for group in group_streams(spec):
        streams, width = group.shape
        block = logits[start : start + streams * width].view(streams, width)
        start += streams * width
        for place, size in enumerate(group.sizes):
            of_id = dict(zip(group.ids[place, :size].tolist(), block[place, :size], strict=True))
            ids, values = reference[group.first + place]
            ours.append(torch.stack([of_id[i] for i in ids.tolist()]))
            theirs.append(values)
    return torch.cat(ours), torch.cat(theirs)


def first_difference(
    ours: np.ndarray[tuple[int, ...], np.dtype[np.int32]],
    theirs: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> int | None:
    """The first row that differs; the shorter answer's length if it is the beginning of the
    longer one."""
    length = min(len(ours), len(theirs))
    differs = np.flatnonzero((ours[:length] != theirs[:length]).any(axis=1))
    if differs.size:
        return int(differs[0])
    return None if len(ours) == len(theirs) else length


def row(family: str, dtype: str, aligned: Sequence[Aligned]) -> Row:
    """A family's line of the table."""
    errors = [error for each in aligned for error in each.errors]
    sizes = [size for each in aligned for size in each.sizes]
    first = [each.first for each in aligned if each.first is not None]
    return {
        "family": family,
        "precision": dtype,
        "requests": len(aligned),
        "same": sum(each.first is None for each in aligned),
        "first difference": str(min(first)) if first else "none",
        "rows": len(errors),
        "mean RMSE": float(np.mean(errors)),
        "largest RMSE": max(errors),
        "logits": float(np.sqrt(np.mean(np.square(sizes)))),
    }


def findings(rows: list[Row], raw: Mapping[str, object]) -> Findings:
    """The table; in float32 every id is the reference's."""
    exact = [row for row in rows if row["precision"] == "float32"]
    different = sum(int(row["requests"] or 0) - int(row["same"] or 0) for row in exact)
    largest = max(float(row["largest RMSE"] or 0) for row in exact)
    return Findings(
        [Table("Against the reference", rows)],
        [
            Verdict("requests that differ, float32", float(different), at_most=0.0),
            Verdict("largest RMSE of logits, float32", largest, at_most=_LIMIT),
        ],
        raw,
    )
