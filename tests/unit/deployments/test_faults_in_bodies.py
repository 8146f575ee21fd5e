"""Where in a body something is wrong, and in which words that is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.deployments.answering_stand_in import WRITTEN, Front, tone, wav
from tests.unit.deployments.speaking_stand_in import GOOD, JSON, StandIn, body, client
from tests.unit.deployments.stand_in import error_of

SPEECH = "/v1/audio/speech"
CHAT = "/v1/chat/completions"
TRANSCRIPTIONS = "/v1/audio/transcriptions"
VOICES = "/v1/audio/voices"
CLIP = ("a.wav", wav(tone(1)))


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store", WRITTEN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"voice": {}}, "voice.id: is required"),
        ({"voice": {"id": 3}}, "voice.id: must be a string"),
        ({"voice": {"id": "rms", "x": 1}}, "voice.x: is not a known field"),
        ({"voice": 3}, 'voice: must be a name or {"id": name}'),
        ({"voice": None}, 'voice: must be a name or {"id": name}'),
        ({"input": ""}, "input: is empty"),
        ({"input": 3}, "input: must be a string"),
        ({"speed": 9}, "speed: must be at most 4"),
        ({"speed": "1"}, "speed: must be a number"),
        ({"seed": 1.5}, "seed: must be a whole number"),
        ({"stream": "yes"}, "stream: must be true or false"),
        ({"stream_format": "mp3"}, "stream_format: must be 'audio' or 'sse'"),
        ({"instructions": "x" * 4097}, "instructions: must have at most 4096 characters"),
    ],
)
async def test_speech(changes: dict[str, Any], message: str) -> None:
    async with client(StandIn()) as http:
        error = error_of(await http.post(SPEECH, json=body(**changes)))
    assert (error["message"], error["param"]) == (message, next(iter(changes)))


async def test_a_misspelt_field_is_told_of_and_not_that_the_right_one_is_missing() -> None:
    given = {"modle" if name == "model" else name: value for name, value in GOOD.items()}
    async with client(StandIn()) as http:
        error = error_of(await http.post(SPEECH, json=given))
    assert error["message"] == "modle: is not a known field"


def user(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def heard(**audio: Any) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", **audio}}


TEXT = {"type": "text", "text": "Hello."}
SPOKEN = {"modalities": ["text", "audio"]}
DATA = "messages[0].content[1].input_audio.data"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (SPOKEN | {"audio": {"format": "wav"}}, "audio.voice: is required"),
        (SPOKEN | {"audio": {"voice": {}, "format": "wav"}}, "audio.voice.id: is required"),
        (
            SPOKEN | {"audio": {"voice": "default", "format": "wav"}, "stream": True},
            "audio.format: must be pcm16 in a stream",
        ),
        ({"messages": []}, "messages: is empty"),
        ({"messages": "Hello."}, "messages: must be a list"),
        ({"messages": ["Hello."]}, "messages[0]: must be an object"),
        ({"messages": [{"content": "Hello."}]}, "messages[0]: has no role"),
        (
            {"messages": [{"role": "user", "content": None}]},
            "messages[0].content: must be a text or a list of parts",
        ),
        ({"messages": [{"role": "user"}]}, "messages[0].content: is required"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content: is empty"),
        ({"messages": [{"role": "user", "user": 1}]}, "messages[0].user: is not a known field"),
        (user(), "messages[0].content: is empty"),
        (user(TEXT, {"type": "text"}), "messages[0].content[1].text: is required"),
        (user(TEXT, {"type": "text", "text": ""}), "messages[0].content[1].text: is empty"),
        (user(TEXT, {"type": "text", "text": 3}), "messages[0].content[1].text: must be a string"),
        (user(TEXT, {}), "messages[0].content[1]: has no type"),
        (
            user(TEXT, {"type": "input_audio"}),
            "messages[0].content[1].input_audio: is required",
        ),
        (user(TEXT, heard(data="")), f"{DATA}: is empty"),
        (user(TEXT, heard(data=3)), f"{DATA}: must be a string"),
        (user(TEXT, heard(data="AAA")), f"{DATA}: is not base64: Incorrect padding"),
        (
            user(TEXT, heard(rate=1)),
            "messages[0].content[1].input_audio.rate: is not a known field",
        ),
        (
            {"messages": [{"role": "system", "content": [{"type": "text", "text": ""}]}]},
            "messages[0].content[0].text: is empty",
        ),
        (
            {"messages": [{"role": "assistant", "content": "Hi.", "audio": {}}]},
            "messages[0].audio.id: is required",
        ),
        (
            {"messages": [{"role": "assistant"}, {"role": "user", "content": "Hello."}]},
            "messages[0]: has neither content nor audio",
        ),
    ],
)
async def test_a_conversation(front: Front, changes: dict[str, Any], message: str) -> None:
    given = {"model": "dialogue", "messages": [{"role": "user", "content": "Hello."}], **changes}
    error = error_of(await front.http.post(CHAT, json=given))
    assert error["message"] == message
    assert message.startswith(error["param"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"input": "\xff"}', "the body is not UTF-8"),
        (b"\x1f\x8b\x08\x00", "the body is not UTF-8; its content-encoding gzip is not taken"),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"seed": ' + b"9" * 5_000 + b"}", "the body has a number with too many digits"),
        (b'{"input": "a\nb"}', "the body is not JSON: Invalid control character (character 12)"),
        (b'{"input": {"a": 1, "a": 2}}', "the body has 'a' twice in one object"),
        (
            b'{"\\ud800": 1}',
            "the body has a name that is not valid Unicode: it has half of a surrogate pair",
        ),
    ],
)
async def test_a_body_that_cannot_be_read(content: bytes, message: str) -> None:
    headers = JSON | ({"content-encoding": "gzip"} if b"\x1f" in content else {})
    async with client(StandIn()) as http:
        answer = await http.post(SPEECH, content=content, headers=headers)
    assert (answer.status_code, error_of(answer)["message"]) == (400, message)


async def test_a_key_that_stands_twice_is_refused_and_not_the_last_one_taken() -> None:
    content = json.dumps(GOOD)[:-1] + ', "voice": "slt"}'
    async with client(engines := StandIn()) as http:
        answer = await http.post(SPEECH, content=content, headers=JSON)
    assert error_of(answer)["message"] == "the body has 'voice' twice in one object"
    assert not engines.calls


@pytest.mark.parametrize(
    ("method", "path"), [("POST", SPEECH), ("POST", CHAT), ("GET", "/v1/models"), ("GET", VOICES)]
)
async def test_a_parameter_of_the_address_is_refused(method: str, path: str) -> None:
    async with client(engines := StandIn()) as http:
        answer = await http.request(method, f"{path}?model=demo", json=GOOD)
    assert (answer.status_code, error_of(answer)["param"]) == (400, "model")
    assert not engines.calls


async def test_a_field_of_a_form_comes_once(front: Front) -> None:
    files = [("file", CLIP), ("file", CLIP)]
    answer = await front.http.post(TRANSCRIPTIONS, data={"model": "opuslm"}, files=files)
    assert error_of(answer)["message"] == "file: comes more than once"
    data: dict[str, Any] = {"name": ["ada", "bob"]}
    answer = await front.http.post(VOICES, data=data, files=files[:1])
    assert error_of(answer)["message"] == "name: comes more than once"
    granularities = {"timestamp_granularities[]": ["segment", "segment"]}
    fields = {"model": "opuslm", "response_format": "verbose_json", **granularities}
    answer = await front.http.post(TRANSCRIPTIONS, data=fields, files=files[:1])
    assert answer.status_code == 200, answer.text


async def test_a_form_that_is_none(front: Front) -> None:
    answer = await front.http.post(TRANSCRIPTIONS, json={"model": "opuslm", "file": "abc"})
    assert error_of(answer)["message"] == (
        "file: is required; send a form, as content-type multipart/form-data"
    )
    fields = {"model": (None, "opuslm"), "file": (None, "abc")}
    answer = await front.http.post(TRANSCRIPTIONS, files=fields)
    assert error_of(answer)["message"] == "file: must be a file"
