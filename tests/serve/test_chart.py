"""What the chart renders for CPUs, on Ray nodes of this machine: it speaks, and a pod may leave.

No Kubernetes: nodes are started with the pods' parameters and variables, and Serve is given
``serveConfigV2`` as KubeRay gives it. Other than in pods, files lie elsewhere, and all nodes share
one network.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import time
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml

from tests.serve.ray_nodes import Cluster, cluster
from tests.serve.service_process import ROOT, SPEECHLM, free_port

pytestmark = [pytest.mark.serve, pytest.mark.chaos]

PATIENCE_SECONDS = 600
"""For a replica to come: a minute, and on a busy machine several."""
TEXT = "Hello, how are you today?"


@dataclass(frozen=True)
class Release:
    """A release whose application answers."""

    ray: Cluster
    url: str
    key: str
    leave_seconds: int

    async def say(self, text: str = TEXT) -> bytes:
        """A WAV of speech, over a connection of its own."""
        body = {"model": "demo-voice", "voice": "slt", "input": text, "response_format": "wav"}
        headers = {"authorization": f"Bearer {self.key}"}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=300) as http:
            answer = await http.post("/v1/audio/speech", json=body)
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """With one node more than there are replicas."""
    chart = pytest.importorskip("tests.unit.k8s.chart")
    data = tmp_path_factory.mktemp("data")
    values = chart.profile("cpu") | {"service": {"drain_seconds": 60}}
    spec = chart.ray_service(values)
    serve_config, port = here(spec["serveConfigV2"], data), free_port()
    serve_config["http_options"]["port"] = port
    groups = {g["groupName"]: g for g in spec["rayClusterConfig"]["workerGroupSpecs"]}
    [pod] = groups["engines"]["template"]["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in pod["env"]}
    with cluster() as ray:
        ray.start(spec["rayClusterConfig"]["headGroupSpec"], head=True)
        ray.deploy(serve_config)
        for name in ("front-ends", "engines", "engines"):
            ray.start(groups[name])
        url = f"http://127.0.0.1:{port}"
        await_ready(ray, url)
        key = (data / "key").read_text()
        yield Release(ray, url, key, int(env["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"]))


def here(serve_config: str, data: Path) -> dict[str, Any]:
    """The same with the files of a pod where this machine has them; makes a key."""
    command = [SPEECHLM, "keys", "create", "--client", "test", "--file", str(data / "keys.yaml")]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    (data / "key").write_text(made.stdout.strip())
    for there, path in (
        ("/opt/speechlm/", f"{ROOT}/"),
        ("/etc/speechlm/keys/", f"{data}/"),
        ("/data/", f"{data}/"),
    ):
        assert there in serve_config
        serve_config = serve_config.replace(there, path)
    moved: dict[str, Any] = yaml.safe_load(serve_config)
    return moved


def await_ready(ray: Cluster, url: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(base_url=url, timeout=30) as http:
        while True:
            application = ray.application("speechlm")
            assert application["status"] != "DEPLOY_FAILED", application["message"]
            try:
                if http.get("/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass  # no proxy listens yet
            assert time.monotonic() < deadline, application
            time.sleep(1)


def sound(wav: bytes) -> tuple[float, float]:
    """Duration in seconds and loudness of a WAV."""
    with wave.open(io.BytesIO(wav)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return file.getnframes() / file.getframerate(), float(np.abs(samples).mean())


async def test_it_speaks(release: Release) -> None:
    seconds, loudness = sound(await release.say())
    assert 1 < seconds < 5
    assert loudness > 300


async def test_who_has_no_key_does_not_get_in(release: Release) -> None:
    async with httpx.AsyncClient(base_url=release.url) as http:
        answer = await http.get("/v1/models")
    assert answer.status_code == 401


async def test_an_engine_s_node_leaves_without_cutting_an_answer(release: Release) -> None:
    """As when its pod is evicted: SIGTERM to the container's first process."""
    node = release.ray.holder("EngineCore")
    over = asyncio.Event()

    async def keep_asking() -> list[bytes]:
        answers = []
        while not over.is_set():
            answers.append(await release.say(" ".join([TEXT] * 10)))
        return answers

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(keep_asking()) for _ in range(2)]
        node.terminate()  # its replica goes on until there is another
        await asyncio.to_thread(node.wait, release.leave_seconds + 15)
        over.set()
    for answers in (task.result() for task in asking):
        lengths = [sound(answer)[0] for answer in answers]
        assert min(lengths) > 10
    assert release.ray.holder("EngineCore") is not node
    assert sound(await release.say())[0] > 1
