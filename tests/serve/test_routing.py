"""Two replicas of one model: where requests go, who waits, and what becomes of live streams."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import httpx
import pytest
import yaml

from tests.serve.replica_loads import Replicas, replicas_of
from tests.serve.service_process import ROOT, Service, running_service

pytestmark = [pytest.mark.serve, pytest.mark.chaos]

ROWS = 8
FRAMES = 50
"""Of a second of audio."""
PATIENCE_SECONDS = 300
"""For replicas to come: an engine needs half a minute, and on a busy machine several."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, endless_model: Path) -> Iterator[Service]:
    """A service with two replicas of the endless model, of eight rows each."""
    data = yaml.safe_load((ROOT / "serve_config.yaml").read_text())
    arguments = data["applications"][0]["args"]
    arguments["service"] = {"drain_seconds": 300}
    model = arguments["models"][0]
    model |= {"id": "demo", "path": str(endless_model), "replicas": 2}
    model["engine"] |= {"max_rows": ROWS, "max_model_len": 3200, "cpus": 0.5}
    model["admission"] = {  # a busy machine is slow, and nothing here is about that
        "realtime": {"weight": 8, "max_wait_seconds": 600},
        "standard": {"weight": 4, "max_wait_seconds": 600},
        "batch": {"weight": 1, "max_wait_seconds": 6},
    }
    path = tmp_path_factory.mktemp("config") / "serve_config.yaml"
    path.write_text(yaml.safe_dump(data))
    with running_service(path) as running:
        yield running


@pytest.fixture(scope="module")
def replicas(pair: Service) -> Iterator[Replicas]:
    with replicas_of(pair, "engine-demo") as both:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(both.loads()) < 2:  # a service is ready with the first
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield both


@dataclass(frozen=True)
class Answer:
    """What came of a request; times in seconds, -1 where there is none."""

    status: int
    first: float
    whole: float
    seconds: float
    retry_after: int


async def ask(http: httpx.AsyncClient, priority: str | None = None, **changes: Any) -> Answer:
    body = {
        "model": "demo",
        "voice": "rms",
        "input": "Hello there.",
        "response_format": "pcm",
        "max_duration_seconds": 1,
        **changes,
    }
    headers = {} if priority is None else {"x-priority-class": priority}
    began, first, received = time.monotonic(), -1.0, 0
    async with http.stream("POST", "/v1/audio/speech", json=body, headers=headers) as answer:
        async for piece in answer.aiter_raw():
            first = time.monotonic() - began if first < 0 else first
            received += len(piece)
    ok = answer.status_code == 200
    return Answer(
        answer.status_code,
        first if ok else -1,
        time.monotonic() - began,
        received / 2 / 24_000 if ok else 0,
        int(answer.headers.get("retry-after", -1)),
    )


def client(pair: Service) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=pair.url, timeout=120, limits=limits)


async def test_a_guided_mix_loads_both_evenly(pair: Service, replicas: Replicas) -> None:
    """Every third client asks without guidance, so whoever counts requests gives one replica more
    rows. Between them all clients ask for more rows than there are."""
    clients, over = 15, asyncio.Event()

    async def keep_asking(http: httpx.AsyncClient, number: int) -> set[int]:
        statuses, scale = set(), 1 if number % 3 == 0 else 2
        while not over.is_set():
            answer = await ask(
                http, seed=number, cfg_scale=scale, max_duration_seconds=1 + number % 4
            )
            statuses.add(answer.status)
        return statuses

    async with client(pair) as http, asyncio.TaskGroup() as group:
        asking = [group.create_task(keep_asking(http, number)) for number in range(clients)]
        await asyncio.sleep(3)
        rows = [[load["rows"] for load in await replicas.in_thread()] for _ in range(12)]
        over.set()
    assert set().union(*(task.result() for task in asking)) == {200}
    assert mean(map(sum, rows)) > 2 * ROWS
    assert mean(abs(one - other) for one, other in rows) <= 4


async def test_classes_hold_under_overload(pair: Service) -> None:
    """Batch fills the queues; what is spoken to somebody is served next to at once."""
    async with client(pair) as http:
        batch = [
            asyncio.create_task(
                ask(http, "batch", seed=i, cfg_scale=2, max_duration_seconds=3),
            )
            for i in range(80)
        ]
        await asyncio.sleep(1.5)
        realtime = [await ask(http, "realtime", seed=i) for i in range(6)]
        humble = await asyncio.gather(*batch)
    assert [answer.status for answer in realtime] == [200] * 6
    assert {answer.status for answer in humble} == {200, 429}
    served = [answer for answer in humble if answer.status == 200]
    refused = [answer for answer in humble if answer.status == 429]
    assert len(served) >= 8
    assert all(answer.seconds == pytest.approx(3, abs=0.05) for answer in served)
    assert all(answer.retry_after >= 1 for answer in refused)
    # A refusal does not wait.
    assert median(answer.whole for answer in refused) < median(answer.first for answer in served)
    waited = sorted(answer.first for answer in served)[len(served) // 2 :]
    assert median(answer.first for answer in realtime) < median(waited)


async def test_a_class_that_does_not_exist_is_refused(pair: Service) -> None:
    async with client(pair) as http:
        answer = await http.post(
            "/v1/audio/speech",
            json={"model": "demo", "voice": "rms", "input": "Hello."},
            headers={"x-priority-class": "urgent"},
        )
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "x-priority-class"


async def ends(http: httpx.AsyncClient, seed: int, seconds: int) -> tuple[str, int]:
    """How a stream of events ends: its last type or its error's code, and the frames it had."""
    body = {"model": "demo", "voice": "rms", "input": "Hello there.", "seed": seed}
    body |= {"stream_format": "sse", "max_duration_seconds": seconds}
    last: dict[str, Any] = {}
    async with http.stream("POST", "/v1/audio/speech", json=body) as answer:
        if answer.status_code != 200:
            await answer.aread()
            return str(answer.json()["error"]["code"]), 0
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                last = json.loads(line.removeprefix("data: "))
    if last["type"] == "error":
        return last["error"]["code"], 0
    return last["type"], last["usage"]["output_tokens"]


async def test_a_killed_engine_takes_only_its_own_streams_along(
    pair: Service, replicas: Replicas
) -> None:
    """They end with an error that says so; another replica takes the place of the dead one."""
    before = set(await asyncio.to_thread(replicas.loads))
    async with client(pair) as http:
        streams = [asyncio.create_task(ends(http, seed, seconds=30)) for seed in range(8)]
        while min(report["rows"] for report in await replicas.in_thread()) < 2:
            assert not any(stream.done() for stream in streams)
            await asyncio.sleep(0.1)
        os.kill(engine_cores(pair)[0], signal.SIGKILL)
        statuses = []
        while not all(stream.done() for stream in streams):
            statuses.append((await ask(http, max_duration_seconds=0.2)).status)
        ended = [stream.result() for stream in streams]
        after = await two_again(replicas, lambda names: names != before)
        statuses += [(await ask(http)).status for _ in range(8)]
    assert set(ended) == {("speech.audio.done", 30 * FRAMES), ("engine_unavailable", 0)}
    assert len(before & after) == 1
    # Until routers miss the dead one's reports it looks like the emptiest.
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > statuses.count(503)
    assert statuses[-8:] == [200] * 8


async def two_again(replicas: Replicas, others: Callable[[set[str]], bool]) -> set[str]:
    """The names of both replicas, once there are two and they are ``others``."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(names := set(await asyncio.to_thread(replicas.loads))) != 2 or not others(names):
            await asyncio.sleep(0.5)
    return names


def engine_cores(service: Service) -> list[int]:
    """The processes of its engines."""
    names = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in service.descendants()}
    return [pid for pid, name in names.items() if "EngineCore" in name]


async def test_a_redeploy_cuts_no_stream(pair: Service, replicas: Replicas) -> None:
    """Clients ask on and on while a new version takes the place of all replicas."""
    before = set(await asyncio.to_thread(replicas.loads))
    over = asyncio.Event()

    async def keep_asking(http: httpx.AsyncClient, seed: int) -> list[Answer]:
        answers = []
        while not over.is_set():
            answers.append(await ask(http, seed=seed, max_duration_seconds=10))
        return answers

    async def keep_looking(http: httpx.AsyncClient) -> set[int]:
        seen = set()
        while not over.is_set():
            seen.add((await http.get("/ready")).status_code)
            await asyncio.sleep(0.2)
        return seen

    async with client(pair) as http, asyncio.TaskGroup() as group:
        asking = [group.create_task(keep_asking(http, seed)) for seed in range(6)]
        ready = group.create_task(keep_looking(http))
        while min(report["rows"] for report in await replicas.in_thread()) < 2:
            await asyncio.sleep(0.1)
        await asyncio.to_thread(replicas.redeploy)
        await two_again(replicas, before.isdisjoint)
        over.set()
    answers = [answer for task in asking for answer in task.result()]
    assert {answer.status for answer in answers} == {200}
    assert all(answer.seconds == pytest.approx(10, abs=0.05) for answer in answers)
    assert ready.result() == {200}


async def test_stopping_lets_streams_end_and_is_not_ready(
    pair: Service, replicas: Replicas
) -> None:
    async with client(pair) as http:
        stream = asyncio.create_task(ask(http, max_duration_seconds=60))
        while not any(report["rows"] for report in await replicas.in_thread()):
            await asyncio.sleep(0.1)
        pair.process.terminate()
        while (ready := await http.get("/ready")).status_code == 200:
            assert not stream.done()
            await asyncio.sleep(0.1)
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "draining")
        assert (await http.get("/live")).status_code == 200
        assert (await ask(http)).status == 503
        assert not stream.done()
        assert (await stream).seconds == pytest.approx(60, abs=0.05)
    assert await asyncio.to_thread(pair.process.wait, 60) == 0
