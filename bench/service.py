"""A service to measure: the one that ``speechlm serve`` starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIG = Path(__file__).parents[1] / "serve_config.yaml"
_END_SECONDS = 60.0


class ServiceError(RuntimeError):
    """The service did not start; what it wrote is on standard error."""


@contextmanager
def serving(config: Path = CONFIG) -> Iterator[str]:
    """Starts a service on a free port and ends it.

    Yields:
        Its URL, once it is ready.

    Raises:
        ServiceError: it ended before.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "deployments.cli", "serve", str(config), "--port", str(port)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        ready = next((line for line in process.stdout if line.startswith("ready: ")), None)
        if ready is None:
            raise ServiceError(f"{' '.join(command)} ended with status {process.wait()}")
        yield ready.removeprefix("ready: ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
