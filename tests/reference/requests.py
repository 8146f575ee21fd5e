"""Mixed requests on which an engine and the reference must agree to the last id."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from engine_adapter.spec import Output, StreamSpec
from tests.reference.generate import (
    Reference,
    ReferenceRequest,
    ReferenceResult,
    plain_rows,
    text_prompt,
)
from tests.reference.model import Row

# In every tiny model the float32 logits were found within 6e-6 of the float64 ones, so two
# float32 implementations are within 1.2e-5 of each other. The rest is for their rounding of
# the scores, which are as large as the logits.
THRESHOLD = 2e-5

# (temperature, top_k, top_p); None is the family's default.
_SAMPLINGS: tuple[tuple[float | None, int | None, float | None], ...] = (
    (None, None, None),
    (0.0, None, None),
    (0.7, 5, 1.0),
    (1.0, 0, 0.9),
    (1.3, 50, 0.8),
    (1.0, 0, 1.0),
)
_CFG_SCALES = (1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Case:
    """A request and what the reference generated for it."""

    request: ReferenceRequest
    result: ReferenceResult


@dataclass(frozen=True)
class Cases:
    """Requests with well-defined results.

    Attributes:
        kept: the cases asked for.
        rejected: requests dropped because a decision was too close.
    """

    kept: list[Case]
    rejected: int


def required_margin(cfg_scale: float, threshold: float = THRESHOLD) -> float:
    """The margin from which the result of a request with this guidance is well-defined.

    The guided logit ``w c + (1 - w) u`` carries the errors of ``c`` and ``u`` times
    ``w + (w - 1)``.
    """
    return threshold * (2 * cfg_scale - 1)


def stable_requests(
    reference: Reference,
    count: int,
    seed: int = 0,
    *,
    outputs: Sequence[Output] | None = None,
    guided: bool | None = None,
    greedy: bool | None = None,
    max_frames: tuple[int, int] = (10, 60),
    max_text_tokens: tuple[int, int] = (10, 40),
    text_lengths: tuple[int, int] = (1, 300),
    min_rows: int = 0,
    threshold: float = THRESHOLD,
) -> Cases:
    """Draws requests and keeps those whose every decision is firm.

    They cycle through the outputs, plain and guided, greedy and seeded, with and without
    ``top_k`` and ``top_p``; a quarter of the prompts begins with audio on all streams, and half
    of the guided ones bring unconditional ids (all, where the family has no prompt of its own).
    Voices are drawn.

    Args:
        reference: the model.
        count: cases to return.
        seed: of the requests. The same arguments give the same cases.
        outputs: ``None`` for all that the family writes.
        guided: ``None`` for both. Text is never guided.
        greedy: ``None`` for both.
        max_frames: least and most ``max_frames`` of a request.
        max_text_tokens: least and most ``max_text_tokens`` of a request.
        text_lengths: least and most ids of a prompt's text.
        min_rows: rows that a request must generate; others are drawn in place of shorter
            ones, which do not count as rejected. Must be within reach of the limits above.
        threshold: the smallest margin of an unguided request (see
            :func:`required_margin`).
    """
    rng = Random(seed)
    spec = reference.spec
    kinds = _kinds(outputs or tuple(spec.prompts), guided, greedy)
    kept: list[Case] = []
    rejected = 0
    for kind in itertools.islice(kinds, count):
        while True:
            request = _request(spec, rng, kind, max_frames, max_text_tokens, text_lengths)
            result = reference.generate(request)
            if len(result.raw_ids) < min_rows:
                continue
            if result.margin >= required_margin(result.cfg_scale, threshold):
                break
            rejected += 1
        kept.append(Case(request, result))
    return Cases(kept, rejected)


@dataclass(frozen=True)
class _Kind:
    output: Output
    guided: bool
    brings_unconditional: bool
    audio_prompt: bool
    sampling: tuple[float | None, int | None, float | None]


def _kinds(outputs: Sequence[Output], guided: bool | None, greedy: bool | None) -> Iterator[_Kind]:
    """All combinations, for ever; neighbours differ in everything."""
    samplings = [s for s in _SAMPLINGS if greedy is None or (s[0] == 0) == greedy]
    audio = [o for o in outputs if "audio" in o]
    plans: list[tuple[Output, bool]] = []
    if guided is not True:
        plans += [(output, False) for output in outputs]
    if guided is not False:
        plans += [(output, True) for output in audio]
    if not plans:
        raise ValueError(f"none of the outputs {list(outputs)} can be guided")
    for i in itertools.count():
        cycle, position = divmod(i, len(plans))
        output, is_guided = plans[position]
        yield _Kind(
            output,
            guided=is_guided,
            brings_unconditional=cycle % 4 in (1, 2),
            audio_prompt=(cycle + position) % 4 == 3,
            sampling=samplings[(cycle + position) % len(samplings)],
        )


def _request(
    spec: StreamSpec,
    rng: Random,
    kind: _Kind,
    max_frames: tuple[int, int],
    max_text_tokens: tuple[int, int],
    text_lengths: tuple[int, int],
) -> ReferenceRequest:
    prompt = _prompt(spec, rng, kind.output, text_lengths)
    if kind.audio_prompt:
        prompt = _audio_rows(spec, rng, frames=rng.randint(1, 20)) + prompt
    unconditional: list[int] | None = None
    if kind.guided and (kind.brings_unconditional or spec.unconditional == "none"):
        unconditional = [row[0] for row in _prompt(spec, rng, kind.output, text_lengths)]
    temperature, top_k, top_p = kind.sampling
    return ReferenceRequest(
        prompt=prompt,
        output=kind.output,
        cfg_scale=rng.choice(_CFG_SCALES) if kind.guided else 1.0,
        unconditional_ids=unconditional,
        seed=rng.randrange(2**63),
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        max_frames=rng.randint(*max_frames),
        max_text_tokens=rng.randint(*max_text_tokens),
    )


def _prompt(
    spec: StreamSpec, rng: Random, output: Output, text_lengths: tuple[int, int]
) -> list[Row]:
    text = spec.text
    assert text is not None  # every served family reads text
    length = rng.randint(*text_lengths)
    ids = [rng.randrange(text.first_id, text.first_id + text.size) for _ in range(length)]
    voice = rng.choice(list(spec.voices)) if spec.voices else None
    return text_prompt(spec, output, ids, voice)


def _audio_rows(spec: StreamSpec, rng: Random, frames: int) -> list[Row]:
    """``audio_begin`` and delayed frames of random codes, with pads where a stream is silent."""
    rows: list[Row] = plain_rows([spec.audio_begin], spec.num_streams)
    for r in range(frames + max(s.delay for s in spec.streams)):
        rows.append(
            [
                rng.randrange(s.first_id, s.first_id + s.size)
                if s.delay <= r < s.delay + frames
                else s.pad_id
                for s in spec.streams
            ]
        )
    return rows
