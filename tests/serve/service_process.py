"""Starting and stopping the service the way users do."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEECHLM = str(Path(sys.executable).with_name("speechlm"))
_START_SECONDS = 240


@dataclass(frozen=True)
class Service:
    """A ``speechlm serve`` that is ready.

    Attributes:
        directory: short-named; Ray's files are under it.
    """

    url: str
    process: subprocess.Popen[str]
    directory: Path

    @property
    def ray_address(self) -> str:
        """``host:port`` of its Ray cluster, for another driver."""
        commands = (Path(f"/proc/{pid}/cmdline").read_text() for pid in self.descendants())
        [address] = {
            m[1] for c in commands if (m := re.search(r"raylet.*--gcs-address=([^\0 ]+)", c))
        }
        return address

    @property
    def metrics_address(self) -> str:
        """``host:port`` of what Prometheus scrapes."""
        [path] = self.directory.glob("speechlm-*/session_latest/metrics_export_port_*")
        return f"127.0.0.1:{path.read_text().strip()}"

    def descendants(self) -> dict[int, str]:
        """Start time (in ticks since boot) of every process it has started, by its id."""
        stats = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                stats[int(entry.name)] = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
        parents = {pid: int(stat.rpartition(")")[2].split()[1]) for pid, stat in stats.items()}
        found = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return {pid: _identity(stats[pid]) for pid in found - {self.process.pid}}

    def resident_bytes(self) -> int:
        """Memory of all its processes that is not shared with files."""
        return sum(self.resident_bytes_by_process().values())

    def resident_bytes_by_process(self) -> dict[int, int]:
        """The same of each, by its id."""
        found = {}
        for pid in self.descendants():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if anonymous := re.search(r"^RssAnon:\s+(\d+) kB", status, re.M):
                found[pid] = int(anonymous[1]) * 1024
        return found

    def kill_engine(self) -> None:
        """Kills the engine core process, as a crash would."""
        cores = [
            pid
            for pid in self.descendants()
            if "EngineCore" in Path(f"/proc/{pid}/cmdline").read_text()
        ]
        assert cores
        for pid in cores:
            os.kill(pid, signal.SIGKILL)

    def stop(self, everybody: signal.Signals | None = None) -> None:
        """Stops it, and checks that it ends well and leaves no process and no file.

        Args:
            everybody: what every process of the group is sent: SIGINT by a terminal, SIGTERM by
                systemd or ``timeout``; None: the first process alone is sent SIGTERM.
        """
        started = self.descendants()
        assert started
        if everybody is None:
            self.process.send_signal(signal.SIGTERM)
        else:
            os.killpg(self.process.pid, everybody)
        assert self.process.wait(timeout=50) == 0  # nothing is being answered
        deadline = time.monotonic() + 10  # what was killed may take its time to be gone
        while left := [pid for pid, identity in started.items() if _lives(pid, identity)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)
        assert not list(self.directory.glob("speechlm-*"))


def _lives(pid: int, identity: str) -> bool:
    try:
        return _identity(Path(f"/proc/{pid}/stat").read_text()) == identity
    except (FileNotFoundError, ProcessLookupError):
        return False


def _identity(stat: str) -> str:
    return stat.rpartition(")")[2].split()[19]  # start time: a pid may be used again


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_service(config: Path) -> Iterator[Service]:
    """``speechlm serve`` on a free port; ended at the latest when the block is left."""
    port = free_port()
    directory = Path(tempfile.mkdtemp(prefix="st-", dir="/tmp"))  # Ray's socket paths must be short
    log = directory / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [SPEECHLM, "serve", str(config), "--port", str(port)],
            cwd=ROOT,
            # Without a token, since a test connects to its Ray as a second driver.
            # Metrics are there within two seconds instead of ten. Ray forgets a gauge that is not
            # set again within twice this time; ours are set every two seconds.
            env={
                **os.environ,
                "TMPDIR": str(directory),
                "RAY_AUTH_MODE": "disabled",
                "RAY_metrics_report_interval_ms": "2000",
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is for pytest
            text=True,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while "ready: " not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield Service(f"http://127.0.0.1:{port}", process, directory)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):  # the second forces
            if process.poll() is None:
                process.send_signal(number)
                try:
                    process.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    continue
        process.kill()
        shutil.rmtree(directory, ignore_errors=True)
