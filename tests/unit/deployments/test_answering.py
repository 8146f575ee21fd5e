"""The replica's side of an answer, with stand-ins for the engine and the vocoder."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from deployments.calls.answer_messages import AnswerCall, Answered, CallPart, Clip, TextPiece
from deployments.calls.messages import Accepted, Refused
from deployments.replica.answering import Answerer
from engine_adapter.families import FAMILIES
from tests.unit.deployments.replica_stand_in import Engine, Remote, Vocoder, vocoding
from vocoder_service.clips import EncoderLimits
from vocoder_service.schedule import WindowSchedule

LIMITS = EncoderLimits(320)
SECOND = Clip(np.zeros(16_000, np.float32))


def call(*parts: CallPart, **fields: Any) -> AnswerCall:
    values: dict[str, Any] = {"task": "conversation", "output": "text+audio", "seed": 5, **fields}
    return AnswerCall(request_id="r", parts=parts, param="messages", **values)


HELLO = CallPart("user", "text", "Hi")


async def events_of(
    engine: Any, vocoder: Vocoder, asked: AnswerCall, limits: EncoderLimits | None = LIMITS
) -> list[Any]:
    answerer = Answerer(engine, vocoder, vocoding(vocoder, WindowSchedule(4, 1.5, 16)), limits)
    return [event async for event in answerer.answer(asked)]


async def test_text_then_audio_then_what_it_took() -> None:
    engine, vocoder = Engine(), Vocoder()
    events = await events_of(engine, vocoder, call(HELLO, CallPart("user", "audio", SECOND)))
    assert events[0] == Accepted(5, 16_000)
    texts = [event.text for event in events if isinstance(event, TextPiece)]
    assert texts == ["w0 ", "w1 ", "w2 ", "w3 "]
    assert sum(len(event) for event in events if isinstance(event, bytes)) == 60
    last = events[-1]
    assert isinstance(last, Answered)
    assert (last.finish_reason, last.text_tokens, last.frames) == ("stop", 4, 30)
    assert last.prompt_frames == 50
    assert last.prompt_tokens == 2 + (2 + 2 + 8) + (2 + 50 + 8) + 2
    assert last.codes[:, 0].tolist() == list(range(30))
    assert engine.closed
    await asyncio.sleep(0)  # it is told by a task of its own
    assert not vocoder.live


@pytest.mark.parametrize(("limit", "frames"), [(4, 0), (5, 1), (20, 16), (33, 29)])
async def test_a_limit_ends_audio_with_the_last_frame_that_fits(limit: int, frames: int) -> None:
    engine, vocoder = Engine(), Vocoder()
    events = await events_of(engine, vocoder, call(HELLO, max_tokens=limit))
    last = events[-1]
    assert (last.finish_reason, last.text_tokens, last.frames) == ("length", 4, frames)
    assert sum(len(event) for event in events if isinstance(event, bytes)) == 2 * frames
    assert engine.closed
    await asyncio.sleep(0)  # it is told by a task of its own
    assert not vocoder.live


async def test_a_limit_that_is_just_reached_cuts_nothing() -> None:
    events = await events_of(Engine(), Vocoder(), call(HELLO, max_tokens=34))
    assert (events[-1].finish_reason, events[-1].frames) == ("stop", 30)


async def test_leaving_ends_everything() -> None:
    engine, vocoder = Engine(), Vocoder()
    answerer = Answerer(engine, vocoder, vocoding(vocoder), LIMITS)  # type: ignore[arg-type]
    answers = answerer.answer(call(HELLO))
    async for event in answers:
        if isinstance(event, TextPiece):
            break
    await answers.aclose()
    assert engine.closed
    await asyncio.sleep(0)  # it is told by a task of its own
    assert not vocoder.live


async def test_a_seed_is_drawn() -> None:
    seeds = {(await events_of(Engine(), Vocoder(), call(HELLO, seed=None)))[0].seed for _ in "ab"}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        (call(CallPart("system", "text", "Be kind.")), "messages"),
        (call(CallPart("user", "text", "x" * 600)), "messages"),
        (call(HELLO, temperature=-1), "temperature"),
        (call(HELLO, cfg_scale=2.0), "cfg_scale"),
        (call(HELLO, max_tokens=0), "max_completion_tokens"),
        (call(CallPart("user", "audio", SECOND), task="transcription"), "model"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(asked: AnswerCall, param: str) -> None:
    *_, last = await events_of(Engine(), Vocoder(), asked)
    assert isinstance(last, Refused)
    assert (last.status, last.param) == (400, param)
    assert last.message.startswith(f"{param}: ")


async def test_audio_that_cannot_fit_is_not_even_encoded() -> None:
    vocoder = Vocoder()
    asked = call(*[CallPart("user", "audio", SECOND)] * 10)
    *_, last = await events_of(Engine(), vocoder, asked)
    assert (last.status, last.param) == (400, "messages")
    assert vocoder.clips == 0


async def test_a_clip_that_the_encoder_cannot_hear_is_not_even_encoded() -> None:
    vocoder = Vocoder()
    asked = call(CallPart("user", "audio", SECOND))
    *_, last = await events_of(Engine(), vocoder, asked, EncoderLimits(320, 8000))
    assert (last.status, last.param) == (400, "messages")
    assert "longer than the model can hear at once: 0.5 s" in last.message
    *_, last = await events_of(Engine(), vocoder, asked, None)
    assert (last.status, last.param) == (400, "messages")
    assert "lacks the encoder" in last.message
    assert vocoder.clips == 0


async def test_audio_that_is_embedded() -> None:
    """Its rows stand in the prompt as zeros, and their embeddings beside it."""
    engine, vocoder = Engine(), Vocoder()
    engine.spec = FAMILIES["bagpiper"]
    clip = np.full((13, 5), 0.5, np.float32)
    vocoder.encode = Remote(lambda _: clip)
    asked = call(CallPart("user", "text", "Hi"), CallPart("user", "audio", SECOND), output="text")
    *_, last = await events_of(engine, vocoder, asked, EncoderLimits(1280))
    assert isinstance(last, Answered)
    assert (last.prompt_frames, last.prompt_tokens) == (13, 1 + (2 + 2 + 1) + (2 + 13 + 1) + 2)
    [request] = engine.asked
    assert request.embedded is not None
    assert request.embedded.positions.tolist() == list(range(8, 21))
    assert np.array_equal(request.embedded.embeddings, clip)


async def test_an_encoder_without_room_is_429() -> None:
    asked = call(CallPart("user", "audio", SECOND))
    *_, last = await events_of(Engine(), Vocoder(busy=True), asked)
    assert last.status == 429
