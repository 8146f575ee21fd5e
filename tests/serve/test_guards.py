"""Keys, limits and deadlines of a running service with two front ends."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from openai import AuthenticationError, OpenAI, RateLimitError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from deployments.guards.keys import hash_key, key_id, make_key
from tests.serve.audit_log import audited
from tests.serve.service_process import ROOT, SPEECHLM, Service, running_service

pytestmark = pytest.mark.serve

Stats = Callable[[], dict[str, Any]]
LEASE_SECONDS = 4
LIMITS: dict[str, dict[str, float]] = {
    "alice": {},
    "narrow": {"concurrent_requests": 3},
    "slow": {"requests_per_second": 0.5, "burst": 5},
    "little": {"audio_seconds_per_day": 3, "concurrent_requests": 1},
}
KEYS = {client: make_key() for client in LIMITS}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guards")


@pytest.fixture(scope="module")
def keys(directory: Path) -> Path:
    path = directory / "keys.yaml"
    clients = {
        client: {"keys": [{"hash": hash_key(KEYS[client])}], "limits": limits}
        for client, limits in LIMITS.items()
    }
    path.write_text(yaml.safe_dump({"clients": clients}))
    return path


@pytest.fixture(scope="module")
def service(serve_config: Path, directory: Path, keys: Path) -> Iterator[Service]:
    data = yaml.safe_load(serve_config.read_text())
    data["applications"][0]["args"] |= {
        "service": {"ingress_replicas": 2},
        "guards": {
            "keys_file": str(keys),
            "usage_file": str(directory / "usage.sqlite"),
            "lease_seconds": LEASE_SECONDS,
            "body_timeout_seconds": 1.0,
            "audit": {"path": str(directory / "audit.jsonl")},
        },
    }
    config = directory / "serve_config.yaml"
    config.write_text(yaml.safe_dump(data))
    with running_service(config) as running:
        yield running
        if running.process.poll() is None:
            running.stop()


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "demo",
        "voice": "rms",
        "input": "Hello there.",
        "response_format": "wav",
        "max_duration_seconds": 1,
        **changes,
    }


def http(service: Service, client: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {KEYS[client]}"}
    return httpx.Client(base_url=service.url, headers=headers, timeout=120)


def within(seconds: float, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def idle(stats: Stats) -> bool:
    now = stats()
    return not (now["engine"]["rows_running"] or now["requests"])


def kill(service: Service, title: str) -> None:
    pids = [
        pid for pid in service.descendants() if title in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_openai_s_client_with_a_right_and_a_wrong_key(service: Service) -> None:
    with OpenAI(base_url=f"{service.url}/v1", api_key=KEYS["alice"]) as client:
        assert [model.id for model in client.models.list()] == ["demo"]
    with (
        OpenAI(base_url=f"{service.url}/v1", api_key=make_key()) as client,
        pytest.raises(AuthenticationError) as caught,
    ):
        client.models.list()
    assert caught.value.code == "invalid_api_key"


def test_what_needs_no_key(service: Service) -> None:
    with httpx.Client(base_url=service.url) as client:
        for path in ("/", "/live", "/ready", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200
        assert client.get("/v1/models").status_code == 401


async def test_a_websocket_needs_a_key_too(service: Service) -> None:
    url = f"{service.url.replace('http', 'ws', 1)}/v1/audio/speech/stream"
    with pytest.raises(InvalidStatus) as caught:
        async with connect(url):
            pass
    assert caught.value.response.status_code == 401
    assert b"invalid_api_key" in caught.value.response.body
    protocols = [Subprotocol("speechlm"), Subprotocol(f"openai-insecure-api-key.{KEYS['alice']}")]
    async with connect(url, subprotocols=protocols) as connection:
        assert connection.subprotocol == "speechlm"


def test_keys_made_and_revoked_while_it_runs(service: Service, keys: Path) -> None:
    def speechlm(*arguments: str) -> str:
        command = [SPEECHLM, "keys", *arguments, "--file", str(keys)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def answers(key: str) -> set[int]:
        headers = {"authorization": f"Bearer {key}"}
        urls = [f"{service.url}/v1/models"] * 8  # of both front ends
        return {httpx.get(url, headers=headers).status_code for url in urls}

    key = speechlm("create", "--client", "carol")
    within(5, lambda: answers(key) == {200})
    keys_before = keys.read_text()
    keys.write_text("clients: [")  # somebody's mistake
    time.sleep(1.5)
    assert answers(key) == {200}
    keys.write_text(keys_before)
    speechlm("revoke", key_id(hash_key(key)))
    within(5, lambda: answers(key) == {401})


def test_concurrent_requests_are_limited_across_front_ends(
    service: Service, directory: Path
) -> None:
    long = body(max_duration_seconds=60, stream=True)
    with http(service, "narrow") as client:
        with ExitStack() as held:
            for _ in range(3):
                response = held.enter_context(client.stream("POST", "/v1/audio/speech", json=long))
                assert response.status_code == 200

            async def at_once() -> list[httpx.Response]:
                headers = dict(client.headers)
                async with httpx.AsyncClient(base_url=service.url, timeout=60) as more:
                    return await asyncio.gather(
                        *(
                            more.post("/v1/audio/speech", json=long, headers=headers)
                            for _ in range(12)
                        )
                    )

            for refused in asyncio.run(at_once()):
                assert refused.status_code == 429
                assert int(refused.headers["retry-after"]) >= 1
                error = refused.json()["error"]
                assert (error["type"], error["code"]) == (
                    "rate_limit_exceeded",
                    "concurrent_requests",
                )
        within(
            5, lambda: client.post("/v1/audio/speech", json=body()).status_code == 200
        )  # the leases came back
    per_file = [
        sum(json.loads(line)["client"] == "narrow" for line in file.read_text().splitlines())
        for file in directory.glob("audit-*.jsonl")
    ]
    assert len(per_file) == 2
    assert all(per_file)  # both front ends took part


def test_the_rate_is_limited_across_front_ends(service: Service) -> None:
    async def at_once(count: int) -> list[int]:
        headers = {"authorization": f"Bearer {KEYS['slow']}"}
        async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
            answers = await asyncio.gather(*(client.get("/v1/models") for _ in range(count)))
        return [answer.status_code for answer in answers]

    began = time.monotonic()
    answers = asyncio.run(at_once(30))
    most = 5 + 0.5 * (time.monotonic() - began)
    assert 5 <= answers.count(200) <= most
    assert answers.count(429) == 30 - answers.count(200)


def test_the_audio_of_the_day_outlives_the_limiter(service: Service) -> None:
    with http(service, "little") as client:
        spoken = client.post("/v1/audio/speech", json=body(max_duration_seconds=4))
        assert spoken.status_code == 200

        def refused() -> bool:
            answer = client.post("/v1/audio/speech", json=body())
            if answer.status_code == 429:
                return bool(answer.json()["error"]["code"] == "audio_seconds_per_day")
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "limiter_unavailable"
            return False

        within(3, refused)
        kill(service, "ray::LimiterActor")
        within(60, refused)
    with (
        OpenAI(base_url=f"{service.url}/v1", api_key=KEYS["little"], max_retries=0) as openai,
        pytest.raises(RateLimitError) as caught,
    ):
        openai.audio.speech.create(model="demo", voice="rms", input="Hello.")
    assert caught.value.code == "audio_seconds_per_day"


def test_at_the_deadline_the_work_stops(service: Service, stats: Stats) -> None:
    within(20, lambda: idle(stats))
    with http(service, "alice") as client:
        long = body(max_duration_seconds=60, stream=True)
        late = client.post("/v1/audio/speech", json=long, headers={"x-request-timeout": "0.001"})
        assert late.status_code == 408
        assert late.json()["error"]["code"] == "deadline"
        within(1, lambda: idle(stats))

        timeout = {"x-request-timeout": "3"}
        with client.stream("POST", "/v1/audio/speech", json=long, headers=timeout) as response:
            assert response.status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in response.iter_raw():
                    pass
        within(1, lambda: idle(stats))


def test_a_body_that_does_not_arrive_is_given_up(service: Service) -> None:
    address = urlsplit(service.url)
    with socket.create_connection((str(address.hostname), address.port or 80), 30) as connection:
        connection.sendall(
            b"POST /v1/audio/speech HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer " + KEYS["alice"].encode() + b"\r\ncontent-length: 99\r\n\r\n{"
        )
        assert b" 408 " in connection.recv(1000)


def test_the_audit_log_says_who_asked_for_what(service: Service, directory: Path) -> None:
    with http(service, "alice") as client:
        whole = client.post(
            "/v1/audio/speech", json=body(seed=7), headers={"x-request-id": "audit-1"}
        )
        card = client.get("/v1/models/demo").json()
        long = body(max_duration_seconds=60, stream=True, cfg_scale=2)
        with client.stream(
            "POST", "/v1/audio/speech", json=long, headers={"x-request-id": "audit-2"}
        ) as response:
            next(response.iter_raw())
    found: dict[str, dict[str, Any]] = {}

    def written() -> bool:
        found.update({entry["request_id"]: entry for entry in audited(directory)})
        return {"audit-1", "audit-2"} <= set(found)

    within(5, written)
    first, second = found["audit-1"], found["audit-2"]
    assert (first["client"], first["key_id"]) == ("alice", key_id(hash_key(KEYS["alice"])))
    assert (first["model"], first["voice"], first["seed"]) == ("demo", "rms", 7)
    assert (first["status"], first["end"], first["finish_reason"]) == (200, "complete", "length")
    assert first["output_bytes"] == len(whole.content)
    assert 0.9 < first["output_seconds"] <= 1
    assert 0 < first["queue_seconds"] <= first["first_byte_seconds"] <= first["total_seconds"]
    assert first["cfg_scale"] == card["cfg_scale"]  # the model's own
    assert "text" not in first
    assert second["cfg_scale"] == 2
    assert second["end"] == "cancelled"
    assert 0 < second["output_seconds"] < 60


def test_logs_name_the_request_and_no_key(service: Service) -> None:
    with http(service, "alice") as client:
        named = {"x-request-id": "logged-1"}
        assert client.post("/v1/audio/speech", json=body(), headers=named).status_code == 200
        client.get("/v1/models", headers={"authorization": f"Bearer {KEYS['alice']}-wrong"})
    [logs] = service.directory.glob("speechlm-*/session_latest/logs")

    def lines_of(deployment: str) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for file in (logs / "serve").glob(f"replica_speechlm_{deployment}_*.log")
            for line in file.read_text().splitlines()
            if line.startswith("{")
        ]

    def named_in(deployment: str) -> bool:
        return any(entry.get("request_id") == "logged-1" for entry in lines_of(deployment))

    within(5, lambda: named_in("Ingress") and named_in("engine-demo"))
    for file in service.directory.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [client for client, key in KEYS.items() if key.encode() in content], file


def test_front_ends_that_die_lose_their_leases(service: Service) -> None:
    long = body(max_duration_seconds=20, stream=True)
    with http(service, "narrow") as client:
        held = ExitStack()
        for _ in range(3):
            held.enter_context(client.stream("POST", "/v1/audio/speech", json=long))
        assert client.post("/v1/audio/speech", json=body()).status_code == 429
        kill(service, "ray::ServeReplica:speechlm:Ingress")

        def served() -> bool:
            try:
                return client.post("/v1/audio/speech", json=body()).status_code == 200
            except httpx.TransportError:
                return False

        within(60, served)
        held.close()


def test_without_keys_it_does_not_listen_to_other_machines(serve_config: Path) -> None:
    command = [SPEECHLM, "serve", str(serve_config), "--host", "0.0.0.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "no API keys are configured" in done.stderr


async def test_stopping_refuses_who_comes_and_finishes_who_is_there(service: Service) -> None:
    """Both front ends; the last test here, since it ends the service.

    The answer is more than a connection holds, so it is not all sent before it is read.
    """
    headers = {"authorization": f"Bearer {KEYS['alice']}"}
    url = f"{service.url.replace('http', 'ws', 1)}/v1/audio/speech/stream"
    # A connection of its own each time, which goes to either front end.
    fresh = httpx.Limits(max_keepalive_connections=0)
    async with (
        httpx.AsyncClient(
            base_url=service.url, headers=headers, limits=fresh, timeout=120
        ) as client,
        connect(url, additional_headers=headers) as talking,
        connect(url, additional_headers=headers) as silent,
    ):
        await talking.send(json.dumps({"type": "start", "model": "demo", "voice": "rms"}))
        long = body(stream=True, response_format="pcm", sample_rate=48_000, max_duration_seconds=60)
        async with client.stream("POST", "/v1/audio/speech", json=long) as stream:
            pieces = stream.aiter_raw()
            received = len(await anext(pieces))
            service.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                while (ready := await client.get("/ready")).status_code == 200:
                    await asyncio.sleep(0.05)
                assert ready.json()["error"]["code"] == "draining"
                for _ in range(8):
                    refused = await client.post("/v1/audio/speech", json=body())
                    assert refused.status_code == 503, refused.text
                    error = refused.json()["error"]
                    assert (error["type"], error["code"]) == ("unavailable", "draining")
                    assert int(refused.headers["retry-after"]) >= 1
                    assert (await client.get("/live")).status_code == 200
                for socket in (talking, silent):
                    await socket.wait_closed()
                    assert socket.close_code == 1001
            received += sum([len(piece) async for piece in pieces])
        assert received / 2 / 48_000 == pytest.approx(60, abs=0.01)
    assert await asyncio.to_thread(service.process.wait, 60) == 0
