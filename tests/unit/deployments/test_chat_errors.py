"""What ``/v1/chat/completions`` refuses, and how it says so."""

import base64
import json
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import Mock

import httpx
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from ray.serve.exceptions import BackPressureError

from deployments.calls.answer_messages import TextPiece
from deployments.calls.messages import Accepted, Refused
from deployments.chat.body import ChatBody
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import CODES, RATE, Front, tone, wav
from tests.unit.deployments.chat_client import (
    AUDIO,
    CLIP,
    HELLO,
    URL,
    ask,
    heard,
    said_by_assistant,
    user,
)
from tests.unit.deployments.stand_in import error_of


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store")


def test_every_field_of_openai_s_is_known() -> None:
    theirs = set(get_type_hints(CompletionCreateParamsBase)) | {"stream"}
    assert theirs <= set(ChatBody.model_fields)


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
    ({"metadata": {"a": 1}}, 400, "metadata"),
    ({"service_tier": "flex"}, 400, "service_tier"),
    ({"user": 5}, 400, "user"),
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
