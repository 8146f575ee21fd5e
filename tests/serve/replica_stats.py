"""The counters of an engine replica, read by a process of its own.

Serve keeps its connection for the life of a process, and there are several services.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.serve.service_process import ROOT, Service


@contextmanager
def reading(service: Service, deployment: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """A function that reads the counters now."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.replica_stats", service.ray_address, deployment],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ask, answers = process.stdin, process.stdout

    def read() -> dict[str, Any]:
        print(file=ask, flush=True)
        stats: dict[str, Any] = json.loads(answers.readline())
        return stats

    try:
        read()  # connects
        yield read
    finally:
        ask.close()
        process.wait(timeout=60)


def _answer(address: str, deployment: str) -> None:
    import ray
    from ray import serve

    ray.init(address=address, namespace="serve", log_to_driver=False)
    handle = serve.get_deployment_handle(deployment, "speechlm")
    for _ in sys.stdin:
        print(json.dumps(handle.stats.remote().result()), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    _answer(*sys.argv[1:])
