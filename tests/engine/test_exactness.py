"""Served ids equal the reference's, whatever the engine was doing meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable

import numpy as np
import pytest

from engine_adapter.request import Chunk, Result, SpeechRequest
from tests.engine.harness import (
    RICHEST,
    ROOMY,
    STARVED,
    STARVED_CACHED,
    Harness,
    Setup,
    as_speech_request,
    check,
    requests_of,
)
from tests.reference.generate import Reference, ReferenceRequest, text_prompt
from tests.reference.requests import Case, required_margin, stable_requests

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def roomy(harness_for: Callable[[Setup], Harness]) -> Harness:
    """An engine with blocks and budget to spare."""
    return harness_for(ROOMY)


@pytest.fixture(scope="module")
def starved(harness_for: Callable[[Setup], Harness]) -> Harness:
    """An engine short of rows, blocks and step budget."""
    return harness_for(STARVED)


def test_mixed_requests_at_once(roomy: Harness, cases: list[Case]) -> None:
    check(cases, roomy.run(roomy.together(requests_of(cases))))
    roomy.counters()


@pytest.fixture(scope="module")
def growing(reference: Reference) -> list[Case]:
    """Requests that start in one block a row and outgrow it: together they must be preempted."""
    return stable_requests(
        reference,
        10,
        seed=5,
        max_frames=(50, 60),
        max_text_tokens=(20, 30),
        text_lengths=(1, 12),
        min_rows=50,
        outputs=[o for o in reference.spec.outputs if "audio" in o],
    ).kept


def test_one_at_a_time(roomy: Harness, cases: list[Case]) -> None:
    some = cases[::3]  # neighbours differ in everything
    check(some, roomy.run(roomy.one_by_one(requests_of(some))))


def test_the_same_request_ten_times_in_a_row(roomy: Harness, cases: list[Case]) -> None:
    for case in (cases[0], next(c for c in cases if c.result.cfg_scale > 1)):
        check([case] * 10, roomy.run(roomy.one_by_one([as_speech_request(case.request)] * 10)))


def test_prompts_that_differ_only_in_other_streams_share_no_blocks(
    roomy: Harness, reference: Reference
) -> None:
    """vLLM's prefix cache looks at stream 0; two reference clips may agree there."""
    spec = reference.spec
    begin = [spec.audio_begin, *[0] * (spec.num_streams - 1)]
    clips = [
        [
            begin,
            *([s.first_id + (7 * row + code) % s.size for s in spec.streams] for row in range(99)),
        ]
        for code in (1, 2)
    ]
    for clip in clips[1:]:
        for row, first in zip(clip, clips[0], strict=True):
            row[0] = first[0]
    requests = [
        ReferenceRequest(prompt=clip, seed=seed, max_frames=8)
        for seed in range(3)
        for clip in clips
    ]
    cases = [Case(request, reference.generate(request)) for request in requests]
    firm = [c for c in cases if c.result.margin >= required_margin(c.result.cfg_scale)]
    assert len({str(c.request.prompt) for c in firm}) == 2
    check(firm * 2, roomy.run(roomy.one_by_one(requests_of(firm * 2))))
    assert firm[0].result.raw_ids != firm[1].result.raw_ids


def test_texts_are_spoken_with_every_voice(roomy: Harness, reference: Reference) -> None:
    spec = reference.spec
    text = "Hello there."
    ids = roomy.engine.tokenizer.encode(text)
    spoken: dict[str | None, str] = {}
    for voice in (None, *spec.voices):
        prompt = text_prompt(spec, "audio", ids, voice)
        for seed in range(20):
            request = ReferenceRequest(prompt, seed=seed, max_frames=8)
            case = Case(request, reference.generate(request))
            if case.result.margin >= required_margin(case.result.cfg_scale):
                break
        asked = SpeechRequest(text=text, voice=voice, seed=seed, max_frames=8)
        check([case], roomy.run(roomy.one_by_one([asked])))
        spoken[voice] = str(case.result.raw_ids)
    assert len(set(spoken.values())) == max(1, len(spec.voices))


def test_scale_one_is_no_guidance(roomy: Harness, cases: list[Case]) -> None:
    before = roomy.counters()["admitted"]
    for case in cases[:8]:
        request = dataclasses.replace(as_speech_request(case.request), cfg_scale=1.0)
        plain = dataclasses.replace(request, unconditional_ids=None)
        got, expected = roomy.run(roomy.together([request, plain]))
        assert got.raw_ids.tolist() == expected.raw_ids.tolist()
    assert roomy.counters()["admitted"] == before


def test_prompts_in_many_chunks(starved: Harness, cases: list[Case]) -> None:
    assert max(len(case.request.prompt) for case in cases) > 10 * STARVED.max_batched_tokens
    check(cases, starved.run(starved.together(requests_of(cases))))
    starved.counters()


def test_preempted_and_resumed(starved: Harness, growing: list[Case]) -> None:
    """Units are preempted whole and go on with the same ids."""
    assert _crowd(starved, growing) >= 20
    pairs = starved.counters()
    assert pairs["preempted"] == pairs["resumed"] > 0


def _crowd(harness: Harness, growing: list[Case]) -> int:
    """Crowds of growing requests, all exact; returns how often units were preempted."""
    preempted = 0
    for _ in range(8):
        results = harness.run(harness.together(requests_of(growing * 4)))
        check(growing * 4, results)
        preempted += sum(result.preemptions for result in results)
        if preempted >= 20:
            break
    return preempted


@RICHEST
@pytest.mark.parametrize("setup", [ROOMY, STARVED], ids=["8 rows", "15 rows"])
def test_many_more_requests_than_rows(
    setup: Setup, harness_for: Callable[[Setup], Harness], reference: Reference
) -> None:
    """200 requests, most of them guided: all finish, in the order in which they came."""
    harness = harness_for(setup)
    few = stable_requests(reference, 10, seed=11, max_frames=(3, 8), max_text_tokens=(3, 6)).kept
    many = [few[i % len(few)] for i in range(200)]
    started: list[int] = []

    async def one(index: int, request: SpeechRequest) -> Result:
        chunks: list[Chunk] = []
        async for chunk in harness.engine.stream(harness.engine.prepare(request)):
            if not chunks:
                started.append(index)
            chunks.append(chunk)
        return Result(
            np.concatenate([c.rows for c in chunks]),
            np.concatenate([c.codes for c in chunks]),
            "",
            chunks[-1].finish_reason or "length",
            0,
        )

    async def run() -> list[Result]:
        tasks = [asyncio.create_task(one(i, r)) for i, r in enumerate(requests_of(many))]
        return list(await asyncio.gather(*tasks))

    check(many, harness.run(run()))
    # Nobody is overtaken by more than the requests that can run beside it.
    late = max(position - index for position, index in enumerate(started))
    assert late <= 4 * setup.max_rows
    harness.counters()


@pytest.mark.parametrize("setup", [ROOMY, STARVED], ids=["roomy", "starved"])
def test_aborts_leave_the_others_alone(
    setup: Setup, harness_for: Callable[[Setup], Harness], cases: list[Case]
) -> None:
    """Requests closed at random rows of every phase: the rest is exact, nothing is left."""
    harness, rng = harness_for(setup), random.Random(3)
    kept, dropped = cases[0::2], cases[1::2]

    async def drop(request: SpeechRequest, after: int) -> None:
        rows = 0
        stream = harness.engine.stream(harness.engine.prepare(request))
        async for chunk in stream:
            rows += len(chunk.rows)
            if rows >= after:
                break
        await stream.aclose()

    async def cancel(request: SpeechRequest, delay: float) -> None:
        async def consume() -> None:
            async for _ in harness.engine.stream(harness.engine.prepare(request)):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(delay)
        for _ in range(rng.choice((1, 2))):  # again, while the first one has it end
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(task, return_exceptions=True)

    async def run() -> list[Result]:
        noise = [drop(r, rng.choice((1, 2, 5, 20, 40))) for r in requests_of(dropped)]
        noise += [cancel(r, rng.choice((0, rng.random()))) for r in requests_of(dropped)]
        others = asyncio.gather(*noise)
        results = await harness.together(requests_of(kept))
        await others
        return results

    check(kept, harness.run(run()))
    pairs = harness.counters()
    assert pairs["aborted"] > 0
    assert pairs["admitted"] == pairs["finished"] + pairs["aborted"]


def test_a_guided_request_takes_one_row_until_its_audio(
    roomy: Harness, reference: Reference, cases: list[Case]
) -> None:
    """The companion costs no row while the answer is text."""
    if "text+audio" not in reference.spec.outputs:
        return  # nothing to be lazy about
    case = next(c for c in cases if c.request.output == "text+audio" and c.result.cfg_scale > 1)
    texts = len(case.result.text_ids)
    in_text: set[int] = set()
    later: set[int] = set()

    async def run() -> None:
        rows, running = 0, None
        request = roomy.engine.prepare(as_speech_request(case.request))
        async for chunk in roomy.engine.stream(request):
            before, rows = rows, rows + len(chunk.rows)
            # All rows there were when the question was answered have come with this chunk.
            if running is not None and rows < texts:
                in_text.add(running)
            elif running is not None and before > texts + 20:
                later.add(running)
            running = (await roomy.engine.stats())["rows_running"]

    for _ in range(10):  # on a busy machine the first chunk may have the whole text
        roomy.run(run())
        if in_text and 2 in later:
            break
    assert in_text == {1}
    assert 2 in later
    roomy.counters()


@RICHEST
def test_preempted_requests_find_their_own_blocks(
    harness_for: Callable[[Setup], Harness], growing: list[Case]
) -> None:
    """The same pressure with the prefix cache on."""
    harness = harness_for(STARVED_CACHED)
    assert _crowd(harness, growing) >= 20
    harness.counters()
