"""What ``/v1/chat/completions`` answers, with a stand-in for the engine replicas."""

import base64
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from ray.serve.exceptions import BackPressureError

from deployments.calls.answer_messages import Answered, CallPart, Clip, TextPiece
from deployments.calls.messages import Accepted, Refused
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import (
    CODES,
    PCM,
    RATE,
    SPOKEN,
    WRITTEN,
    Front,
    tone,
    wav,
)
from tests.unit.deployments.stand_in import error_of

URL = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello."}]
AUDIO: dict[str, Any] = {
    "modalities": ["text", "audio"],
    "audio": {"voice": "default", "format": "wav"},
}
CLIP = base64.b64encode(wav(tone(1))).decode()


def heard(data: str = CLIP) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def assert_codes(part: CallPart) -> None:
    assert isinstance(part.value, np.ndarray)
    assert np.array_equal(part.value, CODES)


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store")


async def ask(
    front: Front, model: str = "dialogue", headers: Any = None, **fields: Any
) -> httpx.Response:
    body = {"model": model, "messages": HELLO, **fields}
    return await front.http.post(URL, json=body, headers=headers)


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


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_text_in_a_stream(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", WRITTEN)
    events = events_of(await ask(front, stream=True))
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1
    choices = [event["choices"][0] for event in events]
    assert choices[0]["delta"]["role"] == "assistant"
    assert "".join(c["delta"].get("content", "") for c in choices) == " Good morning. "
    assert [c["finish_reason"] for c in choices] == [*[None] * (len(choices) - 1), "stop"]
    assert not any("usage" in event for event in events)


async def test_audio_in_a_stream(front: Front) -> None:
    audio = {"voice": "default", "format": "pcm16"}
    asked = AUDIO | {"audio": audio, "stream_options": {"include_usage": True}}
    events = events_of(await ask(front, stream=True, **asked))
    *chunks, usage = events
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens_details"] == {"text_tokens": 3, "audio_tokens": 2}
    assert all(chunk["usage"] is None for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    sound = [delta["audio"] for delta in deltas if "audio" in delta]
    assert "".join(part.get("transcript", "") for part in sound) == "Good morning."
    pcm = b"".join(base64.b64decode(part.get("data", "")) for part in sound)
    assert len(pcm) == len(PCM) * 2 * 24_000 // RATE
    [audio_id] = {part["id"] for part in sound if "id" in part}
    assert sum("expires_at" in part for part in sound) == 1
    kept = front.catalog.answers.find(audio_id)
    assert kept is not None
    assert kept.transcript == "Good morning."


async def test_a_stream_that_fails_has_an_error_and_no_end(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", SPOKEN[:3])
    answer = await ask(front, stream=True)
    *_, last = [line for line in answer.text.split("\n\n") if line]
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["type"] == "server_error"
    assert "[DONE]" not in answer.text


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


async def test_a_model_without_an_ability_is_told_which(front: Front) -> None:
    for model in ("demo", "opuslm"):
        error = error_of(await ask(front, model))
        assert (error["param"], error["code"]) == ("model", "ability_missing")
        assert "'converses'" in error["message"]
    deaf = await ask(front, "bagpiper", messages=[{"role": "user", "content": [heard()]}])
    assert "'understands_audio'" in error_of(deaf)["message"]
    front.catalog.voices.store.add(StoredVoice("ada", 1), wav(tone(1)))
    asked = AUDIO | {"audio": {"voice": "ada", "format": "wav"}}
    mimic = await ask(front, "bagpiper", **asked)
    assert error_of(mimic)["param"] == "audio"
    assert "'clones'" in error_of(mimic)["message"]
    assert not front.engines.calls


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def said_by_assistant(**fields: Any) -> dict[str, Any]:
    return {"messages": [*HELLO, {"role": "assistant", **fields}, *HELLO]}


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"model": None}, 400, "model"),
    ({"model": "gpt"}, 404, "model"),
    ({"messages": None}, 400, "messages"),
    ({"messages": []}, 400, "messages"),
    ({"messages": "Hello."}, 400, "messages"),
    ({"messages": ["Hello."]}, 400, "messages"),
    ({"messages": [{"role": "tool", "content": "x"}]}, 400, "messages"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "messages"),
    (user(""), 400, "messages"),
    (user(" \n"), 400, "messages"),
    (user(None), 400, "messages"),
    (user(5), 400, "messages"),
    (user([]), 400, "messages"),
    (user("\ud800"), 400, "messages"),
    (user([{"type": "image_url"}]), 400, "messages"),
    (user([{"type": "text", "text": ""}]), 400, "messages"),
    (user([{"type": "input_audio"}]), 400, "messages"),
    (user([heard("")]), 400, "messages"),
    (user([heard("no base64")]), 400, "messages"),
    (user([heard("\N{EURO SIGN}" * 4)]), 400, "messages"),
    (user([heard(base64.b64encode(b"no audio").decode())]), 400, "messages"),
    (user([heard(CLIP[:40])]), 400, "messages"),
    (user([heard()] * 17), 400, "messages"),
    (user("x" * 65_537), 400, "messages"),
    ({"messages": HELLO * 1025}, 400, "messages"),
    (said_by_assistant(), 400, "messages"),
    (said_by_assistant(content="x", tool_calls=[{}]), 400, "messages"),
    (said_by_assistant(audio={"id": "audio_nobody"}), 404, "messages"),
    (said_by_assistant(audio={"id": "\ud800"}), 400, "messages"),
    (said_by_assistant(audio={}), 400, "messages"),
    ({"modalities": []}, 400, "modalities"),
    ({"modalities": ["audio"]}, 400, "modalities"),
    ({"modalities": ["text", "text"]}, 400, "modalities"),
    ({"modalities": ["text", "video"]}, 400, "modalities"),
    ({"modalities": ["text", "audio"]}, 400, "audio"),
    ({"audio": AUDIO["audio"]}, 400, "audio"),
    (AUDIO | {"audio": {"voice": "alloy", "format": "wav"}}, 404, "audio"),
    (AUDIO | {"audio": {"voice": "\ud800", "format": "wav"}}, 400, "audio"),
    (AUDIO | {"audio": {"voice": {"id": "\ud800"}, "format": "wav"}}, 400, "audio"),
    (AUDIO | {"audio": {"voice": "default", "format": "ogg"}}, 400, "audio"),
    (AUDIO | {"audio": {"voice": "default"}}, 400, "audio"),
    (AUDIO | {"stream": True}, 400, "audio"),
    ({"stream_options": {"include_usage": True}}, 400, "stream_options"),
    ({"max_tokens": 0}, 400, "max_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, 400, "max_tokens"),
    ({"max_completion_tokens": 1.5}, 400, "max_completion_tokens"),
    ({"temperature": "1"}, 400, "temperature"),
    ({"stream": "yes"}, 400, "stream"),
    ({"n": 2}, 400, "n"),
    ({"tools": [{"type": "function"}]}, 400, "tools"),
    ({"tool_choice": "required"}, 400, "tool_choice"),
    ({"response_format": {"type": "json_object"}}, 400, "response_format"),
    ({"logprobs": True}, 400, "logprobs"),
    ({"top_logprobs": 2}, 400, "top_logprobs"),
    ({"logit_bias": {"5": 1}}, 400, "logit_bias"),
    ({"stop": "."}, 400, "stop"),
    ({"frequency_penalty": 0.1}, 400, "frequency_penalty"),
    ({"presence_penalty": -1}, 400, "presence_penalty"),
    ({"store": True}, 400, "store"),
    ({"metadata": {"a": "b"}}, 400, "metadata"),
    ({"service_tier": "flex"}, 400, "service_tier"),
    ({"user": "me"}, 400, "user"),
    ({"reasoning_effort": "low"}, 400, "reasoning_effort"),
    ({"prediction": {}}, 400, "prediction"),
    ({"colour": "red"}, 400, "colour"),
]


@pytest.mark.parametrize(
    ("fields", "status", "param"), BAD, ids=[f"{b[2]} {i}" for i, b in enumerate(BAD)]
)
async def test_what_cannot_be_done_is_refused_by_name(
    front: Front, fields: dict[str, Any], status: int, param: str
) -> None:
    body = {"model": "dialogue", "messages": HELLO, **fields}
    sent = json.dumps({key: value for key, value in body.items() if value is not None})
    answer = await front.http.post(URL, content=sent, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    error = error_of(answer)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert not front.engines.calls


async def test_a_part_of_a_kind_that_is_not_known_is_told_which_are(front: Front) -> None:
    body = {"model": "dialogue", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}
    error = error_of(await front.http.post(URL, json=body))
    assert error["message"] == (
        "messages[0].content[0]: has the type 'image_url'; it can be 'text', 'input_audio'"
    )


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


@pytest.mark.parametrize(
    ("events", "status", "type_"),
    [
        ((Refused(429, "full"),), 429, "rate_limit_exceeded"),
        ((Accepted(1, RATE), Refused(400, "messages: too long", "messages")), 400, None),
        ((Accepted(1, RATE), Refused(503, "dead")), 503, "unavailable"),
        ((BackPressureError(1, 1),), 429, "rate_limit_exceeded"),
        ((Accepted(1, RATE), TextPiece("Hi")), 500, "server_error"),
    ],
)
async def test_what_replicas_say(tmp_path: Path, events: Any, status: int, type_: str) -> None:
    answer = await ask(Front(tmp_path / "store", events))
    assert answer.status_code == status
    assert error_of(answer)["type"] == (type_ or "invalid_request_error")
    assert ("retry-after" in answer.headers) == (status in (429, 503))


async def test_an_answer_of_nothing(tmp_path: Path) -> None:
    nothing = (Accepted(1, RATE), Answered("length", 9, 0, 0, 0, CODES[:0]))
    front = Front(tmp_path / "store", nothing)
    message = (await ask(front, **AUDIO)).json()["choices"][0]
    assert message["finish_reason"] == "length"
    assert message["message"]["audio"]["transcript"] == ""
    assert len(base64.b64decode(message["message"]["audio"]["data"])) == 44


async def test_audio_in_all_is_limited(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", max_audio_seconds=1.5)
    assert (await ask(front, **user([heard()]))).status_code == 200
    error = error_of(await ask(front, **user([heard(), heard()])))
    assert error["param"] == "messages"


async def test_audio_that_is_referred_to_counts_as_audio_that_is_sent(tmp_path: Path) -> None:
    seconds = len(CODES) * 320 / RATE
    front = Front(tmp_path / "store", max_audio_seconds=3.5 * seconds, max_chat_characters=50)
    audio = (await ask(front, **AUDIO)).json()["choices"][0]["message"]["audio"]
    found = Mock(wraps=front.catalog.answers.find)
    front.catalog.answers.find = found  # type: ignore[method-assign]
    turn = [{"role": "assistant", "audio": {"id": audio["id"]}}]

    async def refer(times: int, text: str = "") -> httpx.Response:
        front.engines.calls.clear()
        said = [{**turn[0], "content": text}] if text else turn
        return await ask(front, messages=[*HELLO, *said * times, *HELLO])

    assert (await refer(3, "Hi.")).status_code == 200
    assert found.call_count == 1
    message = error_of(await refer(4, "Hi."))["message"]
    assert message == "messages[4]: has more audio than is possible"
    assert "51 characters" in error_of(await refer(3))["message"]
    found.reset_mock()
    assert "17 pieces of audio" in error_of(await refer(17))["message"]
    found.assert_not_called()


async def test_a_recording_that_cannot_be_used_any_more_names_the_field(front: Front) -> None:
    front.catalog.voices.store.add(StoredVoice("ada", 1), b"no audio")
    error = error_of(await ask(front, **AUDIO | {"audio": {"voice": "ada", "format": "wav"}}))
    assert error["param"] == "audio"
    assert error["message"].startswith("audio: voice 'ada': is damaged")


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
