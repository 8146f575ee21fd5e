"""Answers to several parts equal the reference's, whose prompts are written out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from engine_adapter.conversation import Part, Prompt, prompt
from engine_adapter.layout import Layout
from engine_adapter.request import SpeechRequest
from engine_adapter.spec import Output, StreamSpec
from tests.engine.harness import RICHEST, ROOMY, STARVED, Harness, Setup, check
from tests.reference import conversation as by_hand
from tests.reference.generate import Reference, ReferenceRequest
from tests.reference.model import PromptRow
from tests.reference.requests import Case, required_margin

pytestmark = pytest.mark.engine

HIDDEN = 64  # of the tiny models
UNCACHED = dataclasses.replace(ROOMY, prefix_cache=False)


def codes_of(spec: StreamSpec, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(s.size, size=frames) for s in spec.streams], axis=1)


def words_of(spec: StreamSpec, seed: int) -> list[int]:
    assert spec.text is not None
    return [spec.text.first_id + seed + i for i in range(12)]


@dataclasses.dataclass(frozen=True)
class Asked:
    """Parts for the engine, and the rows they should become."""

    layout: Layout
    output: Output
    parts: list[Any]
    rows: Sequence[PromptRow]


def conversations(spec: StreamSpec, shift: int = 0) -> list[Asked]:
    """A family's prompts of several parts.

    Args:
        shift: of the codes of all streams but the primary one; other embeddings, too.
    """

    def clip(frames: int, seed: int) -> np.ndarray:
        codes = codes_of(spec, frames, seed)
        codes[:, 1:] = (codes[:, 1:] + shift) % [s.size for s in spec.streams[1:]]
        return codes

    def heard(rows: int, seed: int) -> torch.Tensor | np.ndarray:
        if spec.hears_embeddings:
            generator = torch.Generator().manual_seed(2 * seed + shift)
            return torch.randn(rows, HIDDEN, generator=generator) / 2
        return clip(rows, seed)

    def by_the_family(said: list[Any], output: Output) -> Sequence[PromptRow]:
        if spec.hears_embeddings:
            return by_hand.bagpiper(said, output)
        return by_hand.dialogue(said, spoken=output == "text+audio")

    asked: list[Asked] = []
    if spec.transcription is not None:
        said: list[Any] = [("user", "audio", heard(90, 1))]
        written = (
            by_the_family(said, "text")
            if spec.hears_embeddings
            else by_hand.opuslm_transcription(said[0][2].tolist())
        )
        asked.append(Asked(spec.transcription, "text", said, written))
    if spec.conversation is not None:
        said = [
            ("user", "text", words_of(spec, 100)),
            ("assistant", "text", words_of(spec, 200)),
            ("assistant", "audio", clip(30, 2)),
            ("user", "text", words_of(spec, 300)),
            ("user", "audio", heard(80, 3)),
        ]
        outputs: list[Output] = ["text", "text+audio"]
        asked += [
            Asked(spec.conversation, output, said, by_the_family(said, output))
            for output in outputs
        ]
    return asked


def firm(reference: Reference, asked: Asked, cfg_scale: float = 1.0) -> Case:
    for seed in range(40):
        request = ReferenceRequest(
            asked.rows,
            output=asked.output,
            cfg_scale=cfg_scale,
            seed=seed,
            max_frames=25,
            max_text_tokens=20,
        )
        result = reference.generate(request)
        if result.margin >= required_margin(result.cfg_scale):
            return Case(request, result)
    pytest.fail("every seed has a close decision")


def requested_rows(spec: StreamSpec, asked: Asked) -> Prompt:
    parts = [Part(role, content, np.asarray(value)) for role, content, value in asked.parts]
    return prompt(spec, asked.layout, asked.output, parts)


def requested(spec: StreamSpec, asked: Asked, case: Case) -> SpeechRequest:
    built = requested_rows(spec, asked)
    return SpeechRequest(
        prompt_ids=built.rows.tolist(),
        embedded=built.embedded,
        output=asked.output,
        cfg_scale=case.request.cfg_scale,
        seed=case.request.seed,
        max_frames=25 if "audio" in asked.output else None,
        max_text_tokens=20,
    )


def test_answers_equal_the_reference(
    harness_for: Callable[[Setup], Harness], reference: Reference
) -> None:
    """At once, and again when their prompts are cached."""
    if conversations(reference.spec):  # else the family only speaks
        check_answers(harness_for(ROOMY), reference)


@RICHEST
def test_answers_equal_the_reference_without_a_prefix_cache(
    harness_for: Callable[[Setup], Harness], reference: Reference
) -> None:
    check_answers(harness_for(UNCACHED), reference)


def check_answers(harness: Harness, reference: Reference) -> None:
    spec = reference.spec
    asked = conversations(spec)
    cases = [firm(reference, a) for a in asked]
    requests = [requested(spec, a, case) for a, case in zip(asked, cases, strict=True)]
    for _ in range(2):
        check(cases, harness.run(harness.together(requests)))
    check(cases, harness.run(harness.one_by_one(requests)))
    harness.counters()


def test_clips_that_agree_on_the_primary_stream_share_no_blocks(
    harness_for: Callable[[Setup], Harness], reference: Reference
) -> None:
    spec = reference.spec
    if not conversations(spec):
        return
    harness = harness_for(ROOMY)
    both = [conversations(spec, shift)[-1] for shift in (0, 1)]
    primary = [requested_rows(spec, asked).rows[:, 0].tolist() for asked in both]
    assert primary[0] == primary[1]
    cases = [firm(reference, asked) for asked in both]
    requests = [requested(spec, a, case) for a, case in zip(both, cases, strict=True)]
    check(cases * 2, harness.run(harness.one_by_one(requests * 2)))
    assert cases[0].result.raw_ids != cases[1].result.raw_ids


@RICHEST
def test_what_was_heard_is_heard_again_after_a_preemption(
    harness_for: Callable[[Setup], Harness], reference: Reference
) -> None:
    """And read in pieces: a step takes fewer rows than a clip has."""
    harness, spec = harness_for(STARVED), reference.spec
    spoken = [a for shift in range(2) for a in conversations(spec, shift) if a.output != "text"]
    asked = [(a, scale) for a in spoken for scale in (1.0, 2.0)]
    cases = [firm(reference, a, scale) for a, scale in asked]
    requests = [requested(spec, a, case) for (a, _), case in zip(asked, cases, strict=True)]
    preemptions = 0
    for _ in range(5):
        results = harness.run(harness.together(requests * 2))
        check(cases * 2, results)
        preemptions += sum(result.preemptions for result in results)
        if preemptions:
            break
    assert preemptions
    harness.counters()
