"""What the guards answer, around an application of the tests, with the real limiter in-process."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from ray.serve._private.constants import (
    SERVE_HTTP_REQUEST_DISCONNECT_DISABLED_HEADER,
    SERVE_HTTP_REQUEST_TIMEOUT_S_HEADER,
)
from starlette.testclient import TestClient, WebSocketDenialResponse

from deployments.front_end.ingress import create_app
from deployments.guards.deadline import DeadlinePassed
from deployments.guards.limits import Limiter
from deployments.guards.runtime import Guards
from deployments.guards.settings import ClientLimits, GuardSettings
from deployments.guards.usage import Usage
from deployments.models.catalog import Catalog
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import (
    BEARER,
    KEY,
    OTHER,
    InProcess,
    world,
)
from tests.unit.deployments.stand_in import error_of


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.005)


# Keys


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY}x"],
)
async def test_without_a_right_key_nothing_under_v1_answers(authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    async with world().client(None) as http:
        for method, path in (("GET", "/v1/hello"), ("POST", "/v1/wait"), ("GET", "/v1/none")):
            response = await http.request(method, path, headers=headers)
            assert response.status_code == 401
            error = error_of(response)
            assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/live", headers=headers)).status_code == 200
        assert (await http.get("/whatever", headers=headers)).status_code == 401


async def test_a_key_says_who_calls_and_goes_no_further() -> None:
    made = world()
    async with made.client() as http:
        assert (await http.get("/v1/hello")).json() == "hello"
        await http.get("/v1/hello", headers={"authorization": f"bearer {OTHER}"})
    assert [seen["client"] for seen in made.seen] == ["alice", "bob"]
    assert all("authorization" not in seen["headers"] for seen in made.seen)


async def test_without_keys_and_limits_nobody_is_asked_and_nothing_is_called() -> None:
    made = world(keys=False)
    async with made.client(None) as http:
        assert (await http.get("/v1/hello")).status_code == 200
    assert made.seen[0]["client"] == "anonymous"
    assert made.limiter.calls == 0
    assert made.guards.leases is None


async def test_without_keys_scripts_of_other_sites_are_refused() -> None:
    async with world(keys=False).client(None) as http:
        foreign = await http.get("/v1/hello", headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert error_of(foreign)["code"] == "wrong_origin"
        for none in ("http://[", "null", ""):
            assert (await http.get("/v1/hello", headers={"origin": none})).status_code == 403
        own = await http.get("/v1/hello", headers={"origin": "http://localhost"})
        assert own.status_code == 200
    named = GuardSettings(cors_origins=["https://good.example"])
    async with world(named, keys=False).client(None) as http:
        good = await http.get("/v1/hello", headers={"origin": "https://good.example"})
        assert good.status_code == 200


async def test_a_keys_file_that_broke_shows_in_ready(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("clients: {}")
    settings = GuardSettings(keys_file=str(file))
    guards = Guards.begin(settings, ServiceSettings(), InProcess(), {})
    app = create_app(Catalog([], ServiceSettings(), created=1), guards)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.get("/ready")).json() == {"status": "ready"}
        file.write_text("clients: [")
        assert guards.keys is not None
        guards.keys.refresh()
        answer = await http.get("/ready")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "keys": "stale"})
    await guards.end()


# Limits


async def test_concurrent_requests_are_refused_before_any_work_and_leases_come_back() -> None:
    made = world(GuardSettings(limits=ClientLimits(concurrent_requests=2)))
    async with made.client() as http, made.client(OTHER) as others:
        waiting = [asyncio.create_task(http.post("/v1/wait")) for _ in range(2)]
        await eventually(lambda: made.limiter.limiter.leases("alice", "request") == 2)
        refused = await http.post("/v1/wait")
        assert refused.status_code == 429
        error = error_of(refused)
        assert (error["type"], error["code"]) == ("rate_limit_exceeded", "concurrent_requests")
        assert "concurrent_requests = 2" in error["message"]
        assert int(refused.headers["retry-after"]) >= 1
        assert (await others.get("/v1/hello")).status_code == 200
        made.release.set()
        assert [r.status_code for r in await asyncio.gather(*waiting)] == [200, 200]
        await eventually(lambda: made.limiter.limiter.leases("alice", "request") == 0)
        assert (await http.post("/v1/wait")).status_code == 200
    await made.guards.end()


@pytest.mark.parametrize("way", ["success", "failure", "refusal", "cancel", "deadline"])
async def test_a_lease_is_released_however_a_request_ends(way: str) -> None:
    made = world(GuardSettings(limits=ClientLimits(concurrent_requests=1)))
    leases = made.limiter.limiter.leases
    async with made.client() as http:
        if way == "cancel":
            task = asyncio.create_task(http.post("/v1/wait"))
            await eventually(lambda: leases("alice", "request") == 1)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        else:
            path = {"failure": "/v1/fail", "refusal": "/v1/none", "deadline": "/v1/wait"}
            headers = {"x-request-timeout": "0.05"} if way == "deadline" else {}
            made.limiter.calls = 0
            answer = await http.post(path.get(way, "/v1/echo"), headers=headers)
            expected = {"failure": 500, "refusal": 404, "deadline": 408}
            assert answer.status_code == expected.get(way, 200)
        await eventually(lambda: leases("alice", "request") == 0)
        assert (await http.post("/v1/echo")).status_code == 200
    await made.guards.end()


async def test_audio_is_charged_as_it_was_made_and_the_day_s_end_is_named() -> None:
    made = world(GuardSettings(limits=ClientLimits(audio_seconds_per_day=60)))
    made.release.set()
    async with made.client() as http:
        assert (await http.post("/v1/speak?seconds=61")).content == b"abcd"
        day = int(time.time() // 86_400)
        usage = made.limiter.limiter._usage
        await eventually(lambda: usage.seconds("alice", day) == 61)
        refused = await http.post("/v1/speak")
        assert refused.status_code == 429
        assert error_of(refused)["code"] == "audio_seconds_per_day"
        assert 1 <= int(refused.headers["retry-after"]) <= 86_400
        assert (await http.get("/v1/hello")).status_code == 200  # makes no audio
    await made.guards.end()


async def test_a_limiter_that_does_not_answer_lets_nobody_in() -> None:
    settings = GuardSettings(limits=ClientLimits(concurrent_requests=1))
    made = world(settings)
    made.limiter.fails = True
    async with made.client() as http:
        refused = await http.post("/v1/echo")
        assert refused.status_code == 503
        assert error_of(refused)["code"] == "limiter_unavailable"
        assert int(refused.headers["retry-after"]) >= 1
        made.limiter.fails = False
        assert (await http.post("/v1/echo")).status_code == 200
    await made.guards.end()


async def test_a_limiter_that_was_restarted_learns_what_is_held() -> None:
    made = world(GuardSettings(limits=ClientLimits(concurrent_requests=1)))
    async with made.client() as http:
        waiting = asyncio.create_task(http.post("/v1/wait"))
        await eventually(lambda: made.limiter.limiter.leases("alice", "request") == 1)
        made.limiter.limiter = Limiter(Usage(None), 30, 10)
        assert (await http.post("/v1/echo")).status_code == 429
        made.release.set()
        assert (await waiting).status_code == 200
    await made.guards.end()


async def test_a_full_front_end_answers_429_but_its_health() -> None:
    made = world(GuardSettings(max_http_requests=1))
    async with made.client() as http:
        waiting = asyncio.create_task(http.post("/v1/wait"))
        await asyncio.sleep(0.05)
        refused = await http.get("/v1/hello")
        assert refused.status_code == 429
        assert error_of(refused)["code"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await http.get("/live")).status_code == 200
        made.release.set()
        await waiting
        assert (await http.get("/v1/hello")).status_code == 200


async def test_a_front_end_that_is_to_end_lives_and_finishes_but_takes_nothing_new() -> None:
    made = world(GuardSettings(limits=ClientLimits(concurrent_requests=9)))
    async with made.client() as http:
        begun = asyncio.create_task(http.post("/v1/wait"))
        await eventually(lambda: made.limiter.limiter.leases("alice", "request") == 1)
        made.guards.drain.begin()
        for answer in (await http.get("/v1/hello"), await http.post("/v1/echo")):
            error = error_of(answer)
            assert (answer.status_code, error["type"]) == (503, "unavailable")
            assert error["code"] == "draining"
            assert answer.headers["retry-after"] == "2"
        assert (await http.get("/live")).status_code == 200
        assert not begun.done()
        made.release.set()
        assert (await begun).status_code == 200
    await made.guards.end()


async def test_the_health_of_a_front_end_that_is_to_end() -> None:
    guards = Guards(GuardSettings())
    app = create_app(Catalog([], ServiceSettings(), created=1), guards)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as http:
        assert (await http.get("/ready")).status_code == 200
        guards.drain.begin()
        answer = await http.get("/ready")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "draining")
        assert answer.headers["retry-after"] == "2"
        assert (await http.get("/live")).json() == {"status": "live"}


def test_websockets_have_a_limit_of_their_own() -> None:
    made = world(GuardSettings(max_http_requests=1, max_websockets=1))
    with TestClient(made.app, "http://localhost", headers=BEARER) as http:
        with http.websocket_connect("/v1/talk"):
            with (
                pytest.raises(WebSocketDenialResponse) as caught,
                http.websocket_connect("/v1/talk"),
            ):
                pass
            assert (caught.value.status_code, error_of(caught.value)["code"]) == (429, "overloaded")
            assert int(caught.value.headers["retry-after"]) >= 1
            assert http.get("/v1/hello").status_code == 200
        with http.websocket_connect("/v1/talk"):
            pass


# Bodies and deadlines


async def test_the_largest_body_depends_on_the_path() -> None:
    service = ServiceSettings(max_body_bytes=10, max_upload_bytes=20)

    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x"

    async with world(service=service).client() as http:
        for path, most in (("/v1/echo", 10), ("/v1/audio/transcriptions", 20)):
            for content in (b"x" * most, chunks(most)):
                assert (await http.post(path, content=content)).content == b"x" * most
            for content in (b"x" * (most + 1), chunks(most + 1)):
                refused = await http.post(path, content=content)
                assert refused.status_code == 413
                assert str(most) in error_of(refused)["message"]


async def test_a_body_that_drips_is_given_up() -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.01)

    async with world(GuardSettings(body_timeout_seconds=0.1)).client() as http:
        refused = await http.post("/v1/echo", content=drip())
        assert refused.status_code == 408
        assert "0.1 s" in error_of(refused)["message"]


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", "", "1,2"])
async def test_a_timeout_that_is_none_is_refused_by_name(value: str) -> None:
    async with world().client() as http:
        refused = await http.get("/v1/hello", headers={"x-request-timeout": value})
        assert refused.status_code == 400
        error = error_of(refused)
        assert error["param"] == "x-request-timeout"
        assert error["message"].startswith("x-request-timeout: ")


async def test_before_the_first_byte_the_deadline_is_408_and_the_work_ends() -> None:
    made = world()
    async with made.client() as http:
        late = await http.post("/v1/wait", headers={"x-request-timeout": "0.05"})
        assert late.status_code == 408
        assert error_of(late)["code"] == "deadline"
        assert made.ended == ["wait"]
        assert (await http.get("/v1/hello", headers={"x-request-timeout": "1e300"})).is_success


async def test_after_the_first_byte_the_deadline_breaks_the_stream_off() -> None:
    made = world()
    async with made.client(raises=True) as http:
        with pytest.raises(DeadlinePassed):
            await http.post("/v1/speak", headers={"x-request-timeout": "0.05"})
    assert "speak" in made.ended
    await eventually(lambda: "pieces" in made.ended)


@pytest.mark.parametrize(
    "header", [SERVE_HTTP_REQUEST_DISCONNECT_DISABLED_HEADER, SERVE_HTTP_REQUEST_TIMEOUT_S_HEADER]
)
async def test_serve_s_own_headers_are_refused(header: str) -> None:
    async with world().client() as http:
        answer = await http.get("/v1/hello", headers={header: "1"})
        assert (answer.status_code, error_of(answer)["param"]) == (400, header)


# Browsers


async def test_answers_say_what_browsers_may_do_with_them() -> None:
    made = world()
    made.release.set()
    async with made.client() as http:
        for response in (
            await http.post("/v1/speak"),
            await http.get("/v1/none"),
            await http.post("/v1/fail"),
        ):
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in response.headers["content-security-policy"]
        preflight = await http.options(
            "/v1/hello",
            headers={"origin": "https://a.example", "access-control-request-method": "GET"},
        )
        assert "access-control-allow-origin" not in preflight.headers


async def test_cors_is_for_the_sites_that_are_named() -> None:
    site = "https://a.example"
    async with world(GuardSettings(cors_origins=[site])).client() as http:
        asked = {"access-control-request-method": "POST"}
        asked["access-control-request-headers"] = "authorization, content-type"
        preflight = await http.options(
            "/v1/echo", headers={"origin": site, "authorization": "", **asked}
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == site
        refused = await http.get("/v1/hello", headers={"origin": site, "authorization": "x"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == site
        assert "x-seed" in refused.headers["access-control-expose-headers"]
        failed = await http.post("/v1/fail", headers={"origin": site})
        assert failed.status_code == 500
        assert failed.headers["access-control-allow-origin"] == site
        foreign = await http.get("/v1/hello", headers={"origin": "https://b.example"})
        assert "access-control-allow-origin" not in foreign.headers


# WebSockets


def test_a_websocket_needs_a_key_in_a_header_or_a_protocol() -> None:
    made = world()
    client = TestClient(made.app)
    with (
        pytest.raises(WebSocketDenialResponse) as caught,
        client.websocket_connect("/v1/talk"),
    ):
        pass
    assert caught.value.status_code == 401
    assert error_of(caught.value)["code"] == "invalid_api_key"

    with client.websocket_connect("/v1/talk", headers=BEARER) as socket:
        socket.send_text("hello")
        assert socket.receive_text() == "hello"
    protocols = ["speechlm", f"openai-insecure-api-key.{KEY}"]
    with client.websocket_connect("/v1/talk", subprotocols=protocols) as socket:
        assert socket.accepted_subprotocol == "speechlm"
    assert [seen["client"] for seen in made.seen] == ["alice", "alice"]
    assert KEY not in str(made.seen)


def test_open_websockets_are_limited_and_charged() -> None:
    made = world(GuardSettings(limits=ClientLimits(websockets=1, audio_seconds_per_day=1000)))
    with TestClient(made.app) as client:
        with client.websocket_connect("/v1/talk", headers=BEARER) as socket:
            socket.send_text("hello")
            socket.receive_text()
            with (
                pytest.raises(WebSocketDenialResponse) as caught,
                client.websocket_connect("/v1/talk", headers=BEARER),
            ):
                pass
            assert caught.value.status_code == 429
            assert error_of(caught.value)["code"] == "websockets"
        usage, day = made.limiter.limiter._usage, int(time.time() // 86_400)
        deadline = time.monotonic() + 5
        while usage.seconds("alice", day) != 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with client.websocket_connect("/v1/talk", headers=BEARER):
            pass
