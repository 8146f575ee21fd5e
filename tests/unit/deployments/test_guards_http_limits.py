"""What is refused because there is too much of it: of a client, or in all."""

import asyncio
import time
from contextlib import suppress

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse

from deployments.guards.limits import Limiter
from deployments.guards.settings import ClientLimits, GuardSettings
from deployments.guards.usage import Usage
from tests.unit.deployments.guarded_app import BEARER, OTHER, eventually, world
from tests.unit.deployments.stand_in import error_of


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
