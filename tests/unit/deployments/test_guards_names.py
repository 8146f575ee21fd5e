"""A service without keys answers to this machine's own names only (against DNS rebinding)."""

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse

from deployments.front_end.ingress import create_app
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.models.catalog import Catalog
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import BEARER, InProcess, world
from tests.unit.deployments.stand_in import error_of

FOREIGN = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "evil.example/localhost",
    "0.0.0.0:8000",
    "192.168.1.2:8000",
    "[::2]:8000",
    "[::1",
    "",
]


@pytest.mark.parametrize(
    "name",
    ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "127.9.8.7:1", "[::1]:8000"],
)
async def test_this_machine_s_own_names_are_answered(name: str) -> None:
    async with world(keys=False).client(None) as http:
        assert (await http.get("/v1/hello", headers={"host": name})).status_code == 200


@pytest.mark.parametrize("name", FOREIGN)
async def test_another_name_is_refused_even_from_its_own_pages(name: str) -> None:
    async with world(keys=False).client(None) as http:
        for origin in ({}, {"origin": f"http://{name}"}):
            refused = await http.get("/v1/hello", headers={"host": name, **origin})
            assert refused.status_code == 403
            error = error_of(refused)
            assert (error["param"], error["code"]) == ("Host", "wrong_host")
            assert repr(name) in error["message"]


async def test_one_name_is_needed() -> None:
    async with world(keys=False).client(None) as http:
        twice = [("host", "localhost"), ("host", "evil.example")]
        assert (await http.get("/v1/hello", headers=twice)).status_code == 403


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80"])
def test_a_websocket_to_another_name_is_refused(name: str) -> None:
    client = TestClient(world(keys=False).app)
    with (
        pytest.raises(WebSocketDenialResponse) as caught,
        client.websocket_connect(f"ws://{name}/v1/talk", headers={"origin": f"http://{name}"}),
    ):
        pass
    assert caught.value.status_code == 403
    assert error_of(caught.value)["code"] == "wrong_host"
    with client.websocket_connect("ws://localhost/v1/talk") as socket:
        socket.send_text("hello")
        assert socket.receive_text() == "hello"


async def test_with_keys_or_open_on_purpose_every_name_is_answered() -> None:
    foreign = {"host": "speech.example"}
    async with world().client(None) as http:
        assert (await http.get("/v1/hello", headers={**foreign, **BEARER})).status_code == 200
    async with world(GuardSettings(open=True), keys=False).client(None) as http:
        assert (await http.get("/v1/hello", headers=foreign)).status_code == 200


def test_of_a_service_without_keys_only_the_health_is_told_to_everybody() -> None:
    guards = Guards.begin(GuardSettings(), ServiceSettings(), InProcess(), {})
    client = TestClient(create_app(Catalog([], ServiceSettings(), created=1), guards))
    for path, status in {
        "/live": 200,
        "/ready": 200,
        "/": 403,
        "/docs": 403,
        "/openapi.json": 403,
        "/v1/models": 403,
    }.items():
        assert client.get(path, headers={"host": "10.0.0.7:8000"}).status_code == status, path
