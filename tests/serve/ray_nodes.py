"""Nodes of a Ray cluster on this machine, started as KubeRay starts them in pods."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.serve.service_process import ROOT, Service, free_port

TOKEN = "of-this-cluster-" + "0" * 32
_RAY = str(Path(sys.executable).with_name("ray"))
_START_SECONDS = 120
_OBJECT_STORE_BYTES = str(128 * 2**20)


@dataclass
class Cluster:
    """A head and workers. Ray asks for its token, as in production.

    Attributes:
        nodes: in the order in which they were started.
        metrics: ``host:port`` of what Prometheus scrapes of each.
    """

    directory: Path
    port: int = field(default_factory=free_port)
    dashboard_port: int = field(default_factory=free_port)
    nodes: list[subprocess.Popen[str]] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)

    def start(self, group: dict[str, Any], *, head: bool = False) -> subprocess.Popen[str]:
        """Starts a pod's node, and waits until it is one: here several at once come too late.

        Args:
            group: the head's or a worker's, as in a RayCluster.
        """
        [container] = group["template"]["spec"]["containers"]
        given = group["rayStartParams"]
        parameters = {"num-cpus": container["resources"]["limits"]["cpu"]} | given
        metrics_port = str(free_port())  # pods have addresses of their own
        parameters |= {
            "metrics-export-port": metrics_port,
            "dashboard-agent-listen-port": str(free_port()),
            "object-store-memory": _OBJECT_STORE_BYTES,
        }
        if head:
            parameters |= {
                "port": str(self.port),
                "dashboard-host": "127.0.0.1",
                "dashboard-port": str(self.dashboard_port),
                "temp-dir": str(self.directory),
            }
        else:
            parameters["address"] = f"127.0.0.1:{self.port}"
        flags = " ".join(f"--{name}={value}" for name, value in parameters.items())
        command = f"ulimit -n 65536; {shlex.quote(_RAY)} start {'--head ' * head}{flags} --block"
        set_ = {each["name"]: each["value"] for each in container["env"] if each["name"] != "HOME"}
        said = self.directory / f"node-{len(self.nodes)}"
        with said.open("w") as log:
            node = subprocess.Popen(
                ["/bin/bash", "-c", "--", command],
                cwd=ROOT,
                env=os.environ | set_ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        self.nodes.append(node)
        self.metrics.append(f"127.0.0.1:{metrics_port}")
        deadline = time.monotonic() + _START_SECONDS
        while "Ray runtime started" not in said.read_text():
            assert node.poll() is None, said.read_text()
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.2)
        return node

    def deploy(self, serve_config: dict[str, Any]) -> None:
        """Gives Serve its configuration as the operator does, once the dashboard listens."""
        deadline = time.monotonic() + _START_SECONDS
        with self._dashboard() as http:
            while True:
                try:
                    answer = http.put("/api/serve/applications/", json=serve_config)
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline, self.said()
                    time.sleep(0.5)
            assert answer.status_code == 200, answer.text

    def application(self, name: str) -> dict[str, Any]:
        """What Serve says of an application."""
        with self._dashboard() as http:
            details = http.get("/api/serve/applications/")
        assert details.status_code == 200, details.text
        found: dict[str, Any] = details.json()["applications"][name]
        return found

    def holder(self, process: str) -> subprocess.Popen[str]:
        """The node of the one process that has this in its command."""
        found = [node for node in self.nodes if process in " ".join(self._commands(node))]
        assert len(found) == 1, found
        return found[0]

    def said(self) -> str:
        """What the nodes have printed."""
        return "\n".join(path.read_text() for path in sorted(self.directory.glob("node-*")))

    def kill(self) -> None:
        """Ends everything that was started, at once."""
        for node in self.nodes:
            started = [node.pid, *_family(node)]
            for pid in started:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            node.wait()

    def _commands(self, node: subprocess.Popen[str]) -> list[str]:
        commands = []
        for pid in _family(node):
            try:
                commands.append(Path(f"/proc/{pid}/cmdline").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue
        return commands

    def _dashboard(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.dashboard_port}",
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=30,
        )


def _family(node: subprocess.Popen[str]) -> list[int]:
    return list(Service("", node, Path()).descendants())


@contextmanager
def cluster() -> Iterator[Cluster]:
    """An empty one; ended when the block is left."""
    made = Cluster(Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp")))
    try:
        yield made
    finally:
        made.kill()
        shutil.rmtree(made.directory, ignore_errors=True)
