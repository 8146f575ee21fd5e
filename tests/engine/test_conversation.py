"""Answers to several parts equal the reference's, whose prompts are written out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine_adapter.conversation import Part, prompt
from engine_adapter.layout import Layout
from engine_adapter.request import SpeechRequest
from engine_adapter.spec import Output, StreamSpec
from tests.engine.harness import RICHEST, ROOMY, Harness, Setup, check
from tests.reference import conversation as by_hand
from tests.reference.generate import Reference, ReferenceRequest
from tests.reference.model import Row
from tests.reference.requests import Case, required_margin

pytestmark = pytest.mark.engine

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
    rows: list[Row]


def conversations(spec: StreamSpec, shift: int = 0) -> list[Asked]:
    """A family's prompts of several parts.

    Args:
        shift: of the codes of all streams but the primary one.
    """

    def clip(frames: int, seed: int) -> np.ndarray:
        codes = codes_of(spec, frames, seed)
        codes[:, 1:] = (codes[:, 1:] + shift) % [s.size for s in spec.streams[1:]]
        return codes

    asked: list[Asked] = []
    if spec.transcription is not None:
        audio = clip(90, 1)
        rows = by_hand.opuslm_transcription(audio.tolist())
        asked.append(Asked(spec.transcription, "text", [("user", "audio", audio)], rows))
    if spec.conversation is not None:
        said: list[Any] = [
            ("user", "text", words_of(spec, 100)),
            ("assistant", "text", words_of(spec, 200)),
            ("assistant", "audio", clip(30, 2)),
            ("user", "text", words_of(spec, 300)),
        ]
        if spec.conversation.hears:
            said += [("user", "audio", clip(80, 3))]
        outputs: list[Output] = ["text", "text+audio"]
        for output in outputs:
            rows = (
                by_hand.dialogue(said, spoken=output == "text+audio")
                if spec.conversation.hears
                else by_hand.bagpiper(said, output)
            )
            asked.append(Asked(spec.conversation, output, said, rows))
    return asked


def firm(reference: Reference, asked: Asked) -> Case:
    for seed in range(40):
        request = ReferenceRequest(
            asked.rows, output=asked.output, seed=seed, max_frames=25, max_text_tokens=20
        )
        result = reference.generate(request)
        if result.margin >= required_margin(result.cfg_scale):
            return Case(request, result)
    pytest.fail("every seed has a close decision")


def requested(spec: StreamSpec, asked: Asked, case: Case) -> SpeechRequest:
    rows = prompt(spec, asked.layout, asked.output, [Part(*part) for part in asked.parts])
    return SpeechRequest(
        prompt_ids=rows.tolist(),
        output=asked.output,
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
    assert [r[0] for r in both[0].rows] == [r[0] for r in both[1].rows]
    cases = [firm(reference, asked) for asked in both]
    requests = [requested(spec, a, case) for a, case in zip(both, cases, strict=True)]
    check(cases * 2, harness.run(harness.one_by_one(requests * 2)))
    assert cases[0].result.raw_ids != cases[1].result.raw_ids
