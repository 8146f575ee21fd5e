"""Ending every descendant, also those whose parent is gone, and nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments import processes

# Starts a child that ignores SIGTERM, and a grandchild in a session of its own whose parent
# exits; then ends both.
SCRIPT = """
import subprocess, sys, time
from deployments import processes

processes.adopt_orphans()
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
subprocess.run(["sh", "-c", "setsid sleep 98 & exit"])
time.sleep(0.5)
print(*processes.descendants(), flush=True)
processes.end_descendants(patience=0.3)
print(*processes.descendants(), flush=True)
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "97"])
    yield process
    process.kill()
    process.wait()


def test_a_process_may_be_called_anything(bystander: subprocess.Popen[bytes]) -> None:
    """The kernel cuts names to 15 bytes, in the middle of a character too."""
    name = "\N{LATIN SMALL LETTER E WITH ACUTE}" * 8
    rename = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name.encode()!r}); time.sleep(99)"
    child = subprocess.Popen([sys.executable, "-c", rename])
    try:
        stat = Path(f"/proc/{child.pid}/stat")
        while b"\xc3)" not in stat.read_bytes():
            time.sleep(0.01)
        assert {child.pid, bystander.pid} <= set(processes.descendants())
    finally:
        child.kill()
        child.wait()


def test_no_descendant_is_left(bystander: subprocess.Popen[bytes]) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    before, after = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(before.split()) == 2
    assert after == ""
    time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in before.split())
    assert bystander.poll() is None
