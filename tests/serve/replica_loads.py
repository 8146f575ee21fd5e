"""What each engine replica of a service reports to the routers, read by a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.serve.service_process import ROOT, Service

Loads = dict[str, dict[str, Any]]


@contextmanager
def reading_each(service: Service, deployment: str) -> Iterator[Callable[[], Loads]]:
    """A function that reads the reports of all live replicas now, by their names."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.replica_loads", service.ray_address, deployment],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ask, answers = process.stdin, process.stdout

    def read() -> Loads:
        print(file=ask, flush=True)
        loads: Loads = json.loads(answers.readline())
        return loads

    try:
        read()  # connects
        yield read
    finally:
        ask.close()
        process.wait(timeout=60)


def _answer(address: str, deployment: str) -> None:
    import ray
    from ray.util import list_named_actors

    ray.init(address=address, namespace="serve", log_to_driver=False)
    for _ in sys.stdin:
        names = [each["name"] for each in list_named_actors(all_namespaces=True)]
        replicas = {n: ray.get_actor(n, "serve") for n in names if f"#{deployment}#" in n}
        reports = ray.get([actor.record_routing_stats.remote() for actor in replicas.values()])
        print(json.dumps(dict(zip(replicas, reports, strict=True))), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    _answer(*sys.argv[1:])
