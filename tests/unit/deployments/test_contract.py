"""What the HTTP front end answers, with a stand-in for the engine replicas."""

import base64
import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
from ray.serve.exceptions import BackPressureError

from deployments.audio import wav
from deployments.audio.reading import read_audio
from deployments.catalog import Catalog, ServedModel
from deployments.ingress import create_app
from deployments.messages import (
    Accepted,
    Finished,
    FirstAudio,
    Refused,
    SpeechCall,
    SpeechEvent,
    Utterance,
)
from deployments.model_card import ModelCard
from deployments.settings import ServiceSettings
from deployments.text.english import normalize

PCM = bytes(range(200)) * 8
JSON = {"content-type": "application/json"}
GOOD: dict[str, Any] = {"model": "demo", "input": "Hello.", "voice": "rms"}
WAV = GOOD | {"response_format": "wav"}
HELLO = (Utterance("Hello."),)
CARD = ModelCard("demo", ("slt", "rms"), 1.5, "none")
Script = Sequence[SpeechEvent | Exception]
FIRST = FirstAudio(PCM[:600], prefill=0.02, frames=0.25, vocoder=0.0301)
SPOKEN: Script = (Accepted(7, 16_000), FIRST, PCM[600:], Finished("stop", 9, 21))


class Events:
    """Serve's generator of responses, as far as the ingress uses it."""

    def __init__(self, events: Script) -> None:
        self._events = iter(events)

    def __aiter__(self) -> AsyncIterator[SpeechEvent]:
        return self

    async def __anext__(self) -> SpeechEvent:
        event = next(self._events, None)
        if event is None:
            raise StopAsyncIteration
        if isinstance(event, Exception):
            raise event
        return event

    def cancel(self) -> None:
        self._events = iter(())


class StandIn:
    """Replays events, and keeps the calls it was sent."""

    def __init__(self, events: Script = SPOKEN) -> None:
        self.events = events
        self.calls: list[SpeechCall] = []

    def speak(self, call: SpeechCall) -> Events:
        self.calls.append(call)
        return Events(self.events)

    async def check_health(self) -> None:
        for event in self.events:
            if isinstance(event, Exception):
                raise event


def client(engines: StandIn, *, raises: bool = False, card: ModelCard = CARD) -> httpx.AsyncClient:
    catalog = Catalog([ServedModel(card, engines)], ServiceSettings(), created=1)
    transport = httpx.ASGITransport(create_app(catalog), raise_app_exceptions=raises)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


def error_of(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert error["message"]
    return error


def body(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


BAD_BODIES: list[tuple[dict[str, Any], str]] = [
    ({"input": "Hello.", "voice": "rms"}, "model"),
    ({"model": "demo", "voice": "rms"}, "input"),
    ({"model": "demo", "input": "Hello."}, "voice"),
    (body(input=""), "input"),
    (body(input=" \n\t"), "input"),
    (body(input="?!..."), "input"),
    (body(input="\N{GRINNING FACE}\N{PARTY POPPER}"), "input"),
    (body(input="\ud800 broken"), "input"),
    (body(input="x" * 4097), "input"),
    (body(input=["Hello."]), "input"),
    (body(model=3), "model"),
    (body(voice=3), "voice"),
    (body(voice={"name": "rms"}), "voice"),
    (body(response_format="wave"), "response_format"),
    (body(response_format=None), "response_format"),
    (body(stream_format="websocket"), "stream_format"),
    (body(stream_format="sse", stream=False), "stream"),
    (body(speed=0.2), "speed"),
    (body(speed=4.1), "speed"),
    (body(sample_rate=7999), "sample_rate"),
    (body(sample_rate=48001, response_format="wav"), "sample_rate"),
    (body(sample_rate=22050, response_format="opus"), "sample_rate"),
    (body(sample_rate="16000"), "sample_rate"),
    (body(normalize=1), "normalize"),
    (body(speed=math.nan), "speed"),
    (body(speed="1"), "speed"),
    (body(instructions="Whisper."), "instructions"),
    (body(cfg_scale=math.nan), "cfg_scale"),
    (body(temperature=math.inf), "temperature"),
    (body(top_p=-math.inf), "top_p"),
    (body(seed=1.5), "seed"),
    (body(seed=True), "seed"),
    (body(top_k="3"), "top_k"),
    (body(max_duration_seconds=0), "max_duration_seconds"),
    (body(max_duration_seconds=-1), "max_duration_seconds"),
    (body(max_duration_seconds=1e9), "max_duration_seconds"),
    (body(stream="yes"), "stream"),
    (body(temprature=1), "temprature"),
]


WORDS = replace(CARD, normalizer="english")


async def test_a_model_of_words_gets_words() -> None:
    text = "**Dr. Smith** paid $4.50."
    for card, changes, read in (
        (CARD, {}, text),
        (WORDS, {}, normalize(text)),
        (WORDS, {"normalize": False}, text),
    ):
        engines = StandIn()
        async with client(engines, card=card) as http:
            response = await http.post("/v1/audio/speech", json=body(input=text, **changes))
        assert response.status_code == 200
        assert [call.utterances for call in engines.calls] == [(Utterance(read),)]


async def test_a_long_text_is_spoken_as_several_utterances() -> None:
    engines = StandIn()
    text = "Call me at 7:45 p.m. tomorrow. The dog barked, and then it was quiet again."
    async with client(engines, card=replace(WORDS, utterance_characters=50)) as http:
        response = await http.post("/v1/audio/speech", json=body(input=text))
    assert response.status_code == 200
    (call,) = engines.calls
    assert [u.text for u in call.utterances] == [
        "Call me at seven forty five p m tomorrow.",
        "The dog barked, and then it was quiet again.",
    ]
    assert call.utterances[0].pause > 0


async def test_a_text_of_pictures_only_is_read_by_a_model_of_words() -> None:
    engines = StandIn()
    text = "\N{GRINNING FACE}"
    async with client(engines, card=WORDS) as http:
        response = await http.post("/v1/audio/speech", json=body(input=text))
    assert response.status_code == 200
    assert engines.calls[0].utterances == (Utterance("grinning face"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Say \N{CYRILLIC CAPITAL LETTER DE}\N{CYRILLIC SMALL LETTER A}.", "cannot speak"),
        ("<!-- x -->", "nothing in it to speak"),
    ],
)
async def test_what_has_no_words_is_refused_and_not_left_out(text: str, message: str) -> None:
    engines = StandIn()
    async with client(engines, card=WORDS) as http:
        response = await http.post("/v1/audio/speech", json=body(input=text))
    assert response.status_code == 400
    error = error_of(response)
    assert error["param"] == "input"
    assert message in error["message"]
    assert not engines.calls


@pytest.mark.parametrize(("bad", "param"), BAD_BODIES)
async def test_a_bad_field_is_named(bad: dict[str, Any], param: str) -> None:
    engines = StandIn()
    content = json.dumps(bad)  # not httpx's json=, which refuses NaN
    async with client(engines) as http:
        response = await http.post("/v1/audio/speech", content=content, headers=JSON)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert error["message"].startswith(f"{param}: ")
    assert not engines.calls


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b'"text"', "application/json"),
        (b"null", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"[" * 100_000, "application/json"),
        (json.dumps(body(**{"\udfff": 1})).encode(), "application/json"),
        (json.dumps(GOOD).encode(), "application/x-www-form-urlencoded"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(content: bytes, content_type: str) -> None:
    async with client(StandIn()) as http:
        response = await http.post(
            "/v1/audio/speech", content=content, headers={"content-type": content_type}
        )
    assert response.status_code == 400
    assert error_of(response)["param"] is None


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_url"),
        ("POST", "/v1/audio", 404, "unknown_url"),
        ("GET", "/v1/audio/speech", 405, None),
        ("DELETE", "/v1/models", 405, None),
        ("GET", "/v1/models/gpt", 404, "model_not_found"),
        ("GET", "/v1/models/a/b", 404, "model_not_found"),
    ],
)
async def test_what_is_not_there(method: str, path: str, status: int, code: str | None) -> None:
    async with client(StandIn()) as http:
        response = await http.request(method, path)
    assert response.status_code == status
    assert error_of(response)["code"] == code
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"model": "gpt"}, "model", "model_not_found"),
        ({"model": "\ud800"}, "model", "model_not_found"),
        ({"voice": "alloy"}, "voice", "voice_not_found"),
        ({"voice": {"id": "alloy"}}, "voice", "voice_not_found"),
    ],
)
async def test_an_unknown_model_or_voice_is_404(
    changes: dict[str, Any], param: str, code: str
) -> None:
    content = json.dumps(body(**changes))
    async with client(StandIn()) as http:
        response = await http.post("/v1/audio/speech", content=content, headers=JSON)
    assert response.status_code == 404
    error = error_of(response)
    assert (error["param"], error["code"]) == (param, code)


@pytest.mark.parametrize("stated", [True, False])
async def test_a_body_that_is_too_large_is_413(stated: bool) -> None:
    content = json.dumps(body(input="x" * (1 << 20))).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 65_536):
            yield content[start : start + 65_536]

    async with client(StandIn()) as http:
        response = await http.post(
            "/v1/audio/speech",
            content=content if stated else pieces(),
            headers=JSON,
        )
    assert response.status_code == 413
    error_of(response)


@pytest.mark.parametrize(
    ("events", "status", "kind", "waits"),
    [
        ([Refused(429, "full")], 429, "rate_limit_exceeded", True),
        ([BackPressureError(1, 1)], 429, "rate_limit_exceeded", True),
        ([Refused(400, "seed: too large", "seed")], 400, "invalid_request_error", False),
        ([Accepted(1, 16_000), Refused(503, "the engine is dead")], 503, "unavailable", True),
        ([Accepted(1, 16_000), Finished("stop", 9, 0)], 500, "server_error", False),
        ([Accepted(1, 16_000), FIRST, Refused(503, "dead")], 503, "unavailable", True),
        ([Accepted(1, 16_000), FIRST], 500, "server_error", False),
        ([Accepted(1, 16_000), FIRST, KeyError("a bug")], 500, "server_error", False),
    ],
)
async def test_what_a_replica_refuses_or_breaks_has_a_status(
    events: Script, status: int, kind: str, waits: bool
) -> None:
    async with client(StandIn(events)) as http:
        response = await http.post("/v1/audio/speech", json=GOOD)
    assert response.status_code == status
    assert error_of(response)["type"] == kind
    assert response.headers.get("retry-after") == ("2" if waits else None)


async def test_a_stream_that_breaks_off_is_no_whole_answer() -> None:
    events: Script = [Accepted(1, 16_000), FIRST, Refused(503, "the engine is dead")]
    async with client(StandIn(events), raises=True) as http:
        # A server turns this into a connection that is closed before the end of the body.
        with pytest.raises(RuntimeError):
            await http.post("/v1/audio/speech", json=body(stream=True))


@pytest.mark.parametrize(
    ("changes", "streams", "content", "rate"),
    [
        ({"response_format": "wav"}, False, wav.file(16_000, PCM), "16000"),
        ({"stream": True}, True, wav.header(16_000, None) + PCM, "16000"),
        ({"response_format": "pcm"}, True, None, "24000"),
        ({"response_format": "pcm", "stream": False}, False, None, "24000"),
        ({"voice": {"id": "slt"}, "speed": 1}, False, wav.file(16_000, PCM), "16000"),
        ({"instructions": "", "stream_format": "audio"}, False, wav.file(16_000, PCM), "16000"),
    ],
)
async def test_the_answer(
    changes: dict[str, Any], streams: bool, content: bytes | None, rate: str
) -> None:
    async with client(StandIn()) as http:
        response = await http.post("/v1/audio/speech", json=WAV | changes)
    assert response.status_code == 200
    headers = response.headers
    assert headers["content-type"] == f"audio/{changes.get('response_format', 'wav')}"
    assert (headers["x-seed"], headers["x-sample-rate"]) == ("7", rate)
    accept, *rest = headers["server-timing"].split(", ")
    assert accept.startswith("accept;dur=")
    assert rest == ["prefill;dur=20.0", "frames;dur=250.0", "vocoder;dur=30.1"]
    assert ("content-length" in headers) == (not streams)
    assert headers.get("x-finish-reason") == (None if streams else "stop")
    if content is not None:
        assert response.content == content
    else:
        assert len(response.content) == len(PCM) * 24_000 // 16_000


async def test_the_default_is_openais_mp3() -> None:
    async with client(StandIn()) as http:
        response = await http.post("/v1/audio/speech", json=GOOD)
    assert response.headers["content-type"] == "audio/mpeg"
    assert len(read_audio(response.content, sample_rate=16_000, max_seconds=1)) >= len(PCM) // 2


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def test_events_carry_the_audio_and_end_with_usage() -> None:
    async with client(StandIn()) as http:
        response = await http.post(
            "/v1/audio/speech", json=WAV | {"stream_format": "sse", "response_format": "pcm"}
        )
    assert response.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events_of(response)
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    audio = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    assert len(audio) == len(PCM) * 24_000 // 16_000
    assert done == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 9, "output_tokens": 21, "total_tokens": 30},
        "finish_reason": "stop",
        "seed": 7,
    }


async def test_events_that_break_off_end_with_the_error() -> None:
    events: Script = [Accepted(1, 16_000), FIRST, Refused(503, "the engine is dead")]
    async with client(StandIn(events)) as http:
        response = await http.post("/v1/audio/speech", json=body(stream_format="sse"))
    *_, last = events_of(response)
    assert last["type"] == "error"
    assert last["error"]["code"] == "engine_unavailable"


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
async def test_speed_changes_the_duration(speed: float) -> None:
    async with client(StandIn()) as http:
        response = await http.post("/v1/audio/speech", json=WAV | {"speed": speed})
    samples = (len(response.content) - wav.HEADER_BYTES) // 2
    assert samples == round(len(PCM) // 2 / speed)


async def test_a_client_that_streams_gets_a_stream_unless_it_says_otherwise() -> None:
    headers = {"X-Stainless-Raw-Response": "stream"}
    async with client(StandIn()) as http:
        streamed = await http.post("/v1/audio/speech", json=WAV, headers=headers)
        whole = await http.post("/v1/audio/speech", json=WAV | {"stream": False}, headers=headers)
    assert streamed.content == wav.header(16_000, None) + PCM
    assert whole.content == wav.file(16_000, PCM)


async def test_every_field_reaches_the_replica() -> None:
    engines = StandIn()
    fields: dict[str, Any] = {
        "cfg_scale": 2,
        "seed": 3,
        "temperature": 0.5,
        "top_k": 9,
        "top_p": 0.9,
    }
    async with client(engines) as http:
        await http.post(
            "/v1/audio/speech",
            json=body(**fields, max_duration_seconds=1.5),
            headers={"x-request-id": "mine-1"},
        )
        await http.post(
            "/v1/audio/speech",
            json=body(voice={"id": "slt"}),
            headers={"x-request-id": "not sane"},
        )
    first, second = engines.calls
    assert first == SpeechCall("mine-1", HELLO, "rms", **fields, max_seconds=1.5)
    assert second.request_id.isalnum()
    # What is not said is left to the model.
    assert second == SpeechCall(second.request_id, HELLO, "slt")
    assert second.cfg_scale is None


async def test_models_are_listed_with_their_voices_and_guidance() -> None:
    card = {
        "id": "demo",
        "object": "model",
        "created": 1,
        "owned_by": "speechlm-serve",
        "voices": ["slt", "rms"],
        "cfg_scale": 1.5,
        "abilities": ["speaks"],
        "streams": 1,
        "sample_rate": None,
        "limits": {"context_rows": None, "concurrent_requests": 1},
    }
    async with client(StandIn()) as http:
        assert (await http.get("/v1/models")).json() == {"object": "list", "data": [card]}
        assert (await http.get("/v1/models/demo")).json() == card


async def test_live_is_not_ready() -> None:
    async with client(StandIn([RuntimeError("dead")])) as http:
        assert (await http.get("/live")).status_code == 200
        ready = await http.get("/ready")
    assert ready.status_code == 503
    assert "demo" in error_of(ready)["message"]
    async with client(StandIn()) as http:
        assert (await http.get("/ready")).status_code == 200
