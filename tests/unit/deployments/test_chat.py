"""What ``/v1/chat/completions`` answers, with a stand-in for the engine replicas."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deployments.calls.answer_messages import Answered, CallPart, Clip
from deployments.calls.messages import Accepted
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import (
    CODES,
    PCM,
    RATE,
    WRITTEN,
    Front,
    tone,
    wav,
)
from tests.unit.deployments.chat_client import (
    AUDIO,
    HELLO,
    ask,
    events_of,
    heard,
    said_by_assistant,
)
from tests.unit.deployments.stand_in import error_of


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store")


def assert_codes(part: CallPart) -> None:
    assert isinstance(part.value, np.ndarray)
    assert np.array_equal(part.value, CODES)


async def test_text(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", WRITTEN)
    answer = await ask(front, seed=3, temperature=0.5, top_k=4, top_p=0.9, max_tokens=50)
    assert answer.status_code == 200
    assert answer.headers["x-seed"] == "7"
    body = answer.json()
    assert body["object"] == "chat.completion"
    assert body["model"] == "dialogue"
    [choice] = body["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == " Good morning. "
    assert "audio" not in choice["message"]
    assert body["usage"] == {
        "prompt_tokens": 40,
        "completion_tokens": 3,
        "total_tokens": 43,
        "prompt_tokens_details": {"text_tokens": 30, "audio_tokens": 10},
        "completion_tokens_details": {"text_tokens": 3, "audio_tokens": 0},
    }
    call = front.call
    assert (call.task, call.output, call.max_tokens) == ("conversation", "text", 50)
    assert (call.seed, call.temperature, call.top_k, call.top_p) == (3, 0.5, 4, 0.9)
    assert [(p.role, p.content, p.value) for p in call.parts] == [("user", "text", "Hello.")]


async def test_guidance_and_the_class_reach_the_replica(front: Front) -> None:
    await ask(front, **AUDIO, cfg_scale=2.5, headers={"x-priority-class": "batch"})
    assert (front.call.cfg_scale, front.call.priority) == (2.5, "batch")


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_what_holds_for_the_whole_conversation(front: Front, role: str) -> None:
    answer = await ask(front, messages=[{"role": role, "content": "Be brief."}, *HELLO])
    assert answer.status_code == 200, answer.text
    assert [(p.role, p.value) for p in front.call.parts] == [
        ("system", "Be brief."),
        ("user", "Hello."),
    ]


async def test_audio_and_a_later_turn_that_refers_to_it(front: Front) -> None:
    first = await ask(front, **AUDIO)
    message = first.json()["choices"][0]["message"]
    assert message["content"] is None
    audio = message["audio"]
    assert audio["transcript"] == "Good morning."
    assert base64.b64decode(audio["data"])[44:] == PCM * 2
    assert audio["expires_at"] > first.json()["created"]
    assert front.call.output == "text+audio"

    front.engines.calls.clear()
    for said in (message, {"role": "assistant", "audio": {"id": audio["id"]}}):
        front.engines.calls.clear()
        again = await ask(front, messages=[*HELLO, said, *HELLO], **AUDIO)
        assert again.status_code == 200, again.text
        parts = [(p.role, p.content) for p in front.call.parts]
        mine = [("assistant", "text"), ("assistant", "audio")]
        assert parts == [("user", "text"), *mine, ("user", "text")]
        assert front.call.parts[1].value == "Good morning."
        assert_codes(front.call.parts[2])

    other = await ask(front, "bagpiper", messages=[*HELLO, message, *HELLO])
    assert error_of(other)["param"] == "messages"
    assert "made by dialogue" in error_of(other)["message"]


async def test_audio_that_is_heard(front: Front) -> None:
    said = [{"type": "text", "text": "Listen:"}, heard()]
    answer = await ask(front, messages=[{"role": "user", "content": said}])
    assert answer.status_code == 200, answer.text
    text, audio = front.call.parts
    assert (text.content, text.value) == ("text", "Listen:")
    assert isinstance(audio.value, Clip)
    assert audio.value.samples.shape == (RATE,)
    assert np.abs(audio.value.samples - tone(1)).max() < 1e-3


async def test_a_voice_that_was_recorded_goes_in_front(front: Front) -> None:
    front.catalog.voices.store.add(StoredVoice("ada", 1), wav(tone(1)))
    asked = AUDIO | {"audio": {"voice": {"id": "ada"}, "format": "mp3"}}
    for _ in range(2):
        front.engines.calls.clear()
        assert (await ask(front, **asked)).status_code == 200
        speaker = front.call.parts[0]
        assert (speaker.role, speaker.content) == ("system", "speaker")
        assert_codes(speaker)
    assert len(front.engines.clips) == 1  # encoded once


NEUTRAL: dict[str, Any] = {
    "n": 1,
    "tools": [],
    "tool_choice": "none",
    "parallel_tool_calls": True,
    "response_format": {"type": "text"},
    "logprobs": False,
    "top_logprobs": 0,
    "logit_bias": {},
    "stop": None,
    "frequency_penalty": 0,
    "presence_penalty": 0.0,
    "store": False,
    "metadata": {},
    "service_tier": "auto",
    "user": None,
}


@pytest.mark.parametrize("field", NEUTRAL)
async def test_fields_that_ask_for_nothing_are_taken(front: Front, field: str) -> None:
    assert (await ask(front, **{field: NEUTRAL[field]})).status_code == 200


async def test_an_answer_of_nothing(tmp_path: Path) -> None:
    nothing = (Accepted(1, RATE), Answered("length", 9, 0, 0, 0, CODES[:0]))
    front = Front(tmp_path / "store", nothing)
    message = (await ask(front, **AUDIO)).json()["choices"][0]
    assert message["finish_reason"] == "length"
    assert message["message"]["audio"]["transcript"] == ""
    assert len(base64.b64decode(message["message"]["audio"]["data"])) == 44


@pytest.mark.parametrize("broken", ["no database " * 99, None])
async def test_an_answer_that_cannot_be_kept_is_whole_and_has_expired(
    tmp_path: Path, broken: str | None
) -> None:
    """The store is a file of another kind, or cannot be made."""
    store = tmp_path / "store"
    if broken is None:
        (tmp_path / "file").write_text("")
        store = tmp_path / "file" / "store"
    else:
        store.write_text(broken)
    front = Front(store)
    answer = (await ask(front, **AUDIO)).json()
    audio = answer["choices"][0]["message"]["audio"]
    assert base64.b64decode(audio["data"])[44:] == PCM * 2
    assert audio["expires_at"] <= answer["created"] + 60

    asked = AUDIO | {"audio": {"voice": "default", "format": "pcm16"}}
    *_, expires, last = events_of(await ask(front, stream=True, **asked))
    assert expires["choices"][0]["delta"]["audio"]["expires_at"] <= last["created"] + 60
    assert last["choices"][0]["finish_reason"] == "stop"

    refers = said_by_assistant(audio={"id": audio["id"]})
    refused = await ask(front, **refers)
    assert (refused.status_code, error_of(refused)["code"]) == (503, "store_unavailable")
