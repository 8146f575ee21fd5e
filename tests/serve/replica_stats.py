"""The counters of an engine replica, read by a process of its own.

Serve keeps its connection for the life of a process, and there are several services.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.serve.service_process import ROOT, Service

Stats = Callable[[], dict[str, Any]]
"""Reads the counters now."""


def await_idle(stats: Stats, seconds: float) -> None:
    """Waits until nothing is left of any request in the replica, the engine and the vocoder."""
    deadline = time.monotonic() + seconds
    while not idle(now := stats()):
        assert time.monotonic() < deadline, now
        time.sleep(0.02)


def idle(now: dict[str, Any]) -> bool:
    """Whether the counters say so."""
    engine = now["engine"]
    # An engine counts from its first step on.
    in_use = [engine.get(key) for key in ("rows_running", "rows_waiting", "blocks_in_use")]
    return not any([*in_use, now["requests"], now["waiting"], now["vocoder"]["live_streams"]])


@contextmanager
def reading(service: Service, deployment: str) -> Iterator[Stats]:
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
