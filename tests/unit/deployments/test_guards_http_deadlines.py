"""How large a body may be, how long it may take to come, and how long the answer may take."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from ray.serve._private.constants import (
    SERVE_HTTP_REQUEST_DISCONNECT_DISABLED_HEADER,
    SERVE_HTTP_REQUEST_TIMEOUT_S_HEADER,
)

from deployments.guards.deadline import DeadlinePassed
from deployments.guards.settings import GuardSettings
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import eventually, world
from tests.unit.deployments.stand_in import error_of


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


@pytest.mark.parametrize(
    "value", ["0", "-1", "nan", "inf", "soon", "", "1,2", "1_0", "1e", ".", "+1"]
)
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


async def test_a_stream_of_events_ends_with_the_error_as_an_event() -> None:
    made = world()
    async with made.client(raises=True) as http:
        late = await http.post("/v1/speak?typed=1", headers={"x-request-timeout": "0.05"})
    begun, event = late.text.split("data: ")
    assert (late.status_code, begun) == (200, "ab")
    assert json.loads(event)["type"] == "error"
    assert json.loads(event)["error"]["code"] == "deadline"
    assert "speak" in made.ended
    await eventually(lambda: "pieces" in made.ended)


async def test_two_deadlines_are_refused() -> None:
    async with world().client() as http:
        named = [("x-request-timeout", "1"), ("x-request-timeout", "2")]
        refused = await http.get("/v1/hello", headers=named)
    assert (refused.status_code, error_of(refused)["param"]) == (400, "x-request-timeout")


@pytest.mark.parametrize(
    "header", [SERVE_HTTP_REQUEST_DISCONNECT_DISABLED_HEADER, SERVE_HTTP_REQUEST_TIMEOUT_S_HEADER]
)
async def test_serve_s_own_headers_are_refused(header: str) -> None:
    async with world().client() as http:
        answer = await http.get("/v1/hello", headers={header: "1"})
        assert (answer.status_code, error_of(answer)["param"]) == (400, header)
