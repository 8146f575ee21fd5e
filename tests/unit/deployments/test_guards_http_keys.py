"""Who is let in, and as whom."""

from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse

from deployments.front_end.ingress import create_app
from deployments.guards.priority import HEADER
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.models.catalog import Catalog
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import BEARER, KEY, OTHER, InProcess, world
from tests.unit.deployments.stand_in import error_of


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


@pytest.mark.parametrize(
    ("name", "value"), [("Authorization", f"Bearer {OTHER}"), (HEADER, "batch")]
)
async def test_what_says_who_calls_comes_once(name: str, value: str) -> None:
    async with world().client(None) as http:
        headers = [("Authorization", f"Bearer {KEY}"), (HEADER, "standard"), (name, value)]
        refused = await http.get("/v1/hello", headers=headers)
    assert (refused.status_code, error_of(refused)["param"]) == (400, name)


async def test_a_key_says_who_calls_and_goes_no_further() -> None:
    made = world()
    async with made.client() as http:
        assert (await http.get("/v1/hello")).json() == "hello"
        await http.get("/v1/hello", headers={"authorization": f"bearer {OTHER}"})
    assert [seen["client"] for seen in made.seen] == ["alice", "bob"]
    assert all("authorization" not in seen["headers"] for seen in made.seen)


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

    two = [f"openai-insecure-api-key.{KEY}", f"openai-insecure-api-key.{OTHER}"]
    for several in ({"subprotocols": two}, {"subprotocols": two[:1], "headers": dict(BEARER)}):
        with (
            pytest.raises(WebSocketDenialResponse) as caught,
            client.websocket_connect("/v1/talk", **several),
        ):
            pass
        assert (caught.value.status_code, error_of(caught.value)["param"]) == (400, "Authorization")

    with client.websocket_connect("/v1/talk", headers=BEARER) as socket:
        socket.send_text("hello")
        assert socket.receive_text() == "hello"
    protocols = ["speechlm", f"openai-insecure-api-key.{KEY}"]
    with client.websocket_connect("/v1/talk", subprotocols=protocols) as socket:
        assert socket.accepted_subprotocol == "speechlm"
    assert [seen["client"] for seen in made.seen] == ["alice", "alice"]
    assert KEY not in str(made.seen)


async def test_without_keys_and_limits_nobody_is_asked_and_nothing_is_called() -> None:
    made = world(keys=False)
    async with made.client(None) as http:
        assert (await http.get("/v1/hello")).status_code == 200
    assert made.seen[0]["client"] == "anonymous"
    assert made.limiter.calls == 0
    assert made.guards.leases is None


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
