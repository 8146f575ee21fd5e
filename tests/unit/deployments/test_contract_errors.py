"""What the HTTP front end refuses, and how it says so, with a stand-in for the engine replicas."""

import json
import math
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ray.exceptions import RayTaskError
from ray.serve.exceptions import BackPressureError

from deployments.calls import dead_replicas
from deployments.calls.messages import (
    Accepted,
    Finished,
    Refused,
)
from tests.unit.deployments.speaking_stand_in import (
    FIRST,
    GOOD,
    JSON,
    Script,
    StandIn,
    body,
    client,
)
from tests.unit.deployments.stand_in import error_of

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
    (body(voice="\ud800"), "voice"),
    (body(voice={"id": "\ud800"}), "voice"),
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


@pytest.mark.parametrize(("bad", "param"), BAD_BODIES)
async def test_a_bad_field_is_named(bad: dict[str, Any], param: str) -> None:
    engines = StandIn()
    content = json.dumps(bad)  # not httpx's json=, which refuses NaN
    async with client(engines) as http:
        response = await http.post("/v1/audio/speech", content=content, headers=JSON)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert re.match(rf"{param}(: |[.\[])", error["message"])
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
        ("POST", "/v1/audio/speech/", 404, "unknown_url"),
        ("GET", "/v1/audio/speech", 405, None),
        ("GET", "/v1/audio/speech/stream", 426, None),
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
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/audio/voices", "GET, HEAD, POST"),
        ("PUT", "/v1/audio/voices/ada", "DELETE, GET, HEAD"),
        ("GET", "/v1/audio/speech", "POST"),
    ],
)
async def test_all_methods_of_a_path_are_named(method: str, path: str, allowed: str) -> None:
    async with client(StandIn()) as http:
        response = await http.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


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


def failed(words: str) -> RayTaskError:
    """What a replica raises, as it arrives here."""
    return RayTaskError("speak", f"RuntimeError: {words}", RuntimeError(words))


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
        ([Accepted(1, 16_000), failed("KeyError: 'a bug'")], 500, "server_error", False),
        ([Accepted(1, 16_000), failed("CUDA out of memory. Tried")], 503, "unavailable", True),
        ([Accepted(1, 16_000), FIRST, failed("std::bad_alloc")], 503, "unavailable", True),
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


async def test_where_an_engine_is_dead_another_replica_is_asked_once() -> None:
    async with client(one := StandIn(dead=["first"])) as http:
        assert (await http.post("/v1/audio/speech", json=GOOD)).status_code == 200
    assert len(one.calls) == 2
    assert dead_replicas.is_dead("first")
    async with client(both := StandIn(dead=["second", "third"])) as http:
        response = await http.post("/v1/audio/speech", json=GOOD)
    assert (response.status_code, error_of(response)["code"]) == (503, "engine_unavailable")
    assert len(both.calls) == 2


async def test_a_stream_that_breaks_off_is_no_whole_answer() -> None:
    events: Script = [Accepted(1, 16_000), FIRST, Refused(503, "the engine is dead")]
    async with client(StandIn(events), raises=True) as http:
        # A server turns this into a connection that is closed before the end of the body.
        with pytest.raises(RuntimeError):
            await http.post("/v1/audio/speech", json=body(stream=True))
