"""What each engine replica of a service reports to the routers, and how many there should be.

Through a process of its own: Serve keeps its connection for the life of a process.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.serve.service_process import ROOT, Service

_APPLICATION = "speechlm"


@dataclass(frozen=True)
class Replicas:
    """The replicas of one deployment."""

    process: subprocess.Popen[str]

    def loads(self) -> dict[str, dict[str, Any]]:
        """What those that live report now, by their names."""
        return self._ask("")

    async def in_thread(self) -> list[dict[str, Any]]:
        """The same without the names, while the event loop goes on."""
        return list((await asyncio.to_thread(self.loads)).values())

    def redeploy(self, replicas: int) -> None:
        """Deploys the service's own configuration anew with another number of replicas."""
        self._ask(str(replicas))

    def _ask(self, line: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@contextmanager
def replicas_of(service: Service, deployment: str) -> Iterator[Replicas]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.replica_loads", service.ray_address, deployment],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    try:
        yield Replicas(process)
    finally:
        process.stdin.close()
        process.wait(timeout=60)


def _answer(address: str, deployment: str) -> None:
    import ray

    ray.init(address=address, namespace="serve", log_to_driver=False)
    for line in sys.stdin:
        if line.strip():
            _redeploy(deployment, int(line))
        print(json.dumps(_loads(deployment)), flush=True)
    ray.shutdown()


def _loads(deployment: str) -> dict[str, Any]:
    import ray
    from ray.exceptions import RayActorError
    from ray.util import list_named_actors

    loads = {}
    for name in [each["name"] for each in list_named_actors(all_namespaces=True)]:
        if f"#{deployment}#" in name:
            # One that is just stopping is none that lives: its name goes first, or it does.
            with suppress(RayActorError, ValueError):
                actor = ray.get_actor(name, "serve")
                loads[name] = ray.get(actor.record_routing_stats.remote())
    return loads


def _redeploy(deployment: str, replicas: int) -> None:
    from ray.serve.context import _get_global_client
    from ray.serve.schema import ServeDeploySchema

    client = _get_global_client()
    deployed = client.get_serve_details()["applications"][_APPLICATION]["deployed_app_config"]
    deployed["deployments"] = [{"name": deployment, "num_replicas": replicas}]
    client.deploy_apps(ServeDeploySchema.model_validate({"applications": [deployed]}))


if __name__ == "__main__":
    _answer(*sys.argv[1:])
