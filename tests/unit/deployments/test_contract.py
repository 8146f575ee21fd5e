"""What the HTTP front end answers, with a stand-in for the engine replicas."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.audio import wav
from deployments.audio.reading import read_audio
from deployments.calls.messages import (
    Accepted,
    Refused,
    SpeechCall,
    Utterance,
)
from deployments.front_end.ingress import create_app
from deployments.models.catalog import Catalog
from deployments.stores.voice_store import StoredVoice
from deployments.text.english import normalize
from tests.unit.deployments.answering_stand_in import CODES, Front, tone
from tests.unit.deployments.answering_stand_in import wav as recording
from tests.unit.deployments.speaking_stand_in import (
    CARD,
    FIRST,
    GOOD,
    HELLO,
    PCM,
    WAV,
    Script,
    StandIn,
    body,
    client,
)
from tests.unit.deployments.stand_in import error_of

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
@pytest.mark.parametrize("stream", [False, True])
async def test_speed_changes_the_duration(speed: float, stream: bool) -> None:
    async with client(StandIn()) as http:
        response = await http.post(
            "/v1/audio/speech", json=WAV | {"speed": speed, "stream": stream}
        )
    samples = (len(response.content) - wav.HEADER_BYTES) // 2
    assert samples == round(len(PCM) // 2 / speed)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_sample_rate_is_the_one_that_is_asked_for(stream: bool) -> None:
    asked = WAV | {"sample_rate": 48_000, "stream": stream}
    async with client(StandIn()) as http:
        response = await http.post("/v1/audio/speech", json=asked)
    assert response.headers["x-sample-rate"] == "48000"
    assert int.from_bytes(response.content[24:28], "little") == 48_000
    assert len(response.content) - wav.HEADER_BYTES == 3 * len(PCM)


async def test_a_recorded_voice_reaches_the_replica(tmp_path: Path) -> None:
    front = Front(tmp_path / "store")
    front.catalog.voices.store.add(StoredVoice("ada", 1, None), recording(tone(1)))
    engines = StandIn()
    model = replace(front.catalog.model("opuslm"), engines=engines)
    catalog = Catalog([model], front.catalog.service, created=1)
    transport = httpx.ASGITransport(create_app(catalog))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        response = await http.post("/v1/audio/speech", json=body(model="opuslm", voice="ada"))
    assert response.status_code == 200
    [call] = engines.calls
    assert call.speaker is not None
    assert call.speaker.tolist() == CODES.tolist()


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
            headers={"x-request-id": "mine-1", "x-priority-class": "batch"},
        )
        await http.post(
            "/v1/audio/speech",
            json=body(voice={"id": "slt"}),
            headers={"x-request-id": "not sane"},
        )
    first, second = engines.calls
    asked = SpeechCall("mine-1", HELLO, "rms", **fields, max_seconds=1.5, priority="batch")
    assert first == asked
    assert second.request_id.isalnum()
    # What is not said is left to the model, but for the length, which the service bounds.
    assert second == SpeechCall(second.request_id, HELLO, "slt", max_seconds=600)
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
        "limits": {"context_rows": None, "concurrent_requests": 1, "rows": 1},
    }
    async with client(StandIn()) as http:
        assert (await http.get("/v1/models")).json() == {"object": "list", "data": [card]}
        assert (await http.get("/v1/models/demo")).json() == card


@pytest.mark.parametrize(
    "path",
    ["/", "/live", "/ready", "/v1/models", "/v1/models/demo", "/v1/audio/voices/slt"],
)
async def test_a_load_balancer_may_ask_for_the_head_alone(path: str) -> None:
    async with client(StandIn()) as http:
        answer = await http.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_live_is_not_ready() -> None:
    async with client(StandIn([RuntimeError("dead")])) as http:
        assert (await http.get("/live")).status_code == 200
        ready = await http.get("/ready")
    assert ready.status_code == 503
    assert "demo" in error_of(ready)["message"]
    async with client(StandIn()) as http:
        assert (await http.get("/ready")).status_code == 200
