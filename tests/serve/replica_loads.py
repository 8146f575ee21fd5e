"""What each engine replica of a service reports to the routers, and new versions of all of them.

Through a process of its own: Serve keeps its connection for the life of a process.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.serve.service_process import ROOT, Service

_APPLICATION = "speechlm"


@dataclass(frozen=True)
class Replicas:
    """The replicas of one deployment.

    Attributes:
        errors: file of what the process that asks them complains of.
    """

    process: subprocess.Popen[str]
    errors: Path

    def loads(self) -> dict[str, dict[str, Any]]:
        """What those that live report now, by their names."""
        return self._ask("")

    async def in_thread(self) -> list[dict[str, Any]]:
        """The same without the names, while the event loop goes on."""
        return list((await asyncio.to_thread(self.loads)).values())

    def redeploy(self) -> None:
        """Deploys the service's own configuration anew with another setting."""
        self._ask("redeploy")

    def _ask(self, line: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, self.errors.read_text()
        return json.loads(answer)


@contextmanager
def replicas_of(service: Service, deployment: str) -> Iterator[Replicas]:
    errors = service.directory / "replica_loads"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.serve.replica_loads", service.ray_address, deployment],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    assert process.stdin is not None
    try:
        yield Replicas(process, errors)
    finally:
        process.stdin.close()
        process.wait(timeout=60)


def _answer(address: str, deployment: str) -> None:
    import ray

    ray.init(address=address, namespace="serve", log_to_driver=False)
    for line in sys.stdin:
        if line.strip():
            _redeploy()
        print(json.dumps(_loads(deployment)), flush=True)
    ray.shutdown()


def _loads(deployment: str) -> dict[str, Any]:
    import ray
    from ray.exceptions import RayActorError, RayTaskError
    from ray.util import list_named_actors

    names = [each["name"] for each in list_named_actors(all_namespaces=True)]
    asked = {}
    for name in names:
        if f"#{deployment}#" in name:
            with suppress(ValueError):  # it has just gone
                asked[name] = ray.get_actor(name, "serve").record_routing_stats.remote()
    loads = {}
    for name, answer in asked.items():
        # One that starts or stops is none that lives: it is not there, or has no engine.
        with suppress(RayActorError, RayTaskError):
            loads[name] = ray.get(answer)
    return {name: load for name, load in loads.items() if load["lives"]}


def _redeploy() -> None:
    from ray.serve.context import _get_global_client
    from ray.serve.schema import ServeDeploySchema

    client = _get_global_client()
    deployed = client.get_serve_details()["applications"][_APPLICATION]["deployed_app_config"]
    deployed["args"]["models"][0]["vocoder"]["max_batch"] = 16
    client.deploy_apps(ServeDeploySchema.model_validate({"applications": [deployed]}))


if __name__ == "__main__":
    _answer(*sys.argv[1:])
