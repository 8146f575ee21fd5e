"""A service that is told to end at any moment, or ends by itself, leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Stands for Ray: it starts processes that write files, takes signals for itself, and fails.
SCRIPT = """
import os, signal, subprocess, sys, time
from deployments import supervision
from deployments.cli import main
from deployments.commands import CommandError, serve

WRITER = "import pathlib, sys, time\\nwhile True:\\n    p = pathlib.Path(sys.argv[1])\\n" \\
    "    p.mkdir(parents=True, exist_ok=True)\\n    (p / str(time.time())).touch()\\n"

def stand_in(options, directory):
    how = sys.argv[1]
    print("began", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "slow" not in how:
        logs = supervision.logs(directory)
        subprocess.Popen([sys.executable, "-c", WRITER, str(logs)], start_new_session=True)
        while not logs.exists():
            time.sleep(0.01)
    if how == "error":
        raise CommandError("the reason")
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "bug":
        raise RuntimeError("a bug")
    if how == "done":
        return
    if how == "deaf":  # never hears of it
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    if "starting" not in how:
        supervision.ready(directory)
    print("goes on", flush=True)
    try:
        while True:
            time.sleep(1)
    except supervision.Stop:
        print("stopping", flush=True)
        raise

serve._serve = stand_in
sys.exit(main(["serve"]))
"""


def begun(how: str, folder: Path, *, until: str = "goes on") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, how],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while until and until not in process.stdout.readline():
        assert process.poll() is None
    return process


@pytest.mark.parametrize("everybody", [False, True], ids=["alone", "group"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", ["starting", "ready"])
def test_one_signal(tmp_path: Path, how: str, number: signal.Signals, everybody: bool) -> None:
    process = begun(how, tmp_path)
    if everybody:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out.endswith("stopped\n")
    assert err == ""
    if how == "ready" and not everybody:
        assert "stopping\n" in out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_at_the_very_beginning(tmp_path: Path, seconds: float) -> None:
    process = begun("slow starting", tmp_path, until="began")
    time.sleep(seconds)
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("stopped\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_kills(tmp_path: Path, number: signal.Signals) -> None:
    process = begun("deaf", tmp_path)
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (1, "")
    assert out.endswith("stopped\n")
    time.sleep(0.2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("error", 1, "speechlm: the reason\n"),
        ("crash", 1, "speechlm: the service was ended by SIGSEGV\nlogs: "),
        ("bug", 1, "RuntimeError: a bug\n"),
        ("done", 0, ""),
    ],
)
def test_an_end_by_itself_keeps_the_logs(tmp_path: Path, how: str, code: int, said: str) -> None:
    process = begun(how, tmp_path, until="began")
    _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert said in err
    [directory] = tmp_path.iterdir()
    written = set((directory / "session_latest" / "logs").iterdir())
    time.sleep(0.2)
    assert set((directory / "session_latest" / "logs").iterdir()) == written  # nobody writes


def test_without_a_parent_it_ends(tmp_path: Path) -> None:
    process = begun("slow ready", tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.communicate(timeout=20)
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
