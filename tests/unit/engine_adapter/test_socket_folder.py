"""What a killed engine leaves of its sockets goes with the next engine."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from engine_adapter import shared_memory
from engine_adapter.socket_folder import SocketFolder

KILLED = """
import os, signal, sys
from pathlib import Path
from engine_adapter.socket_folder import SocketFolder
folder = SocketFolder(Path(sys.argv[1]))
(folder.path / "socket").touch()
os.kill(os.getpid(), signal.SIGKILL)
"""


SHARING = """
import os, signal, sys
from multiprocessing import get_context, resource_tracker
from multiprocessing.shared_memory import SharedMemory
segment = SharedMemory(create=True, size=64)
resource_tracker.unregister(segment._name, "shared_memory")  # as vLLM does
lock = get_context("spawn").Lock()
semaphore = lock._semlock
resource_tracker.unregister(semaphore.name, "semaphore")  # its tracker is killed, too
print(segment.name, "sem." + semaphore.name.lstrip("/"), flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""
ENGINE = """
import os, signal, subprocess, sys
from pathlib import Path
from engine_adapter.socket_folder import SocketFolder
folder = SocketFolder(Path(sys.argv[1]))
with folder.given_to_vllm():
    core = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdin=-1, stdout=-1, text=True)
    print(core.stdout.readline(), end="")
if sys.argv[3] == "remove":
    core.communicate()
    folder.remove()
else:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["remove", "killed"])
def test_shared_memory_of_an_engine_goes_with_it_or_with_the_next_one(
    tmp_path: Path, end: str
) -> None:
    arguments = [sys.executable, "-c", ENGINE, str(tmp_path), SHARING, end]
    named = subprocess.run(arguments, check=False, capture_output=True, text=True).stdout.split()
    segments = [Path("/dev/shm", name) for name in named]
    assert [name[:4] for name in named] == ["psm_", "sem."]
    assert [segment.exists() for segment in segments] == 2 * [end == "killed"]
    SocketFolder(tmp_path).remove()
    assert not any(segment.exists() for segment in segments)


def test_of_a_note_only_segments_are_removed(tmp_path: Path) -> None:
    kept = tmp_path / "psm_kept"
    kept.touch()
    shared_memory.remove([f"../..{kept}", f"psm_/../../..{kept}", "", "."])
    assert kept.exists()


def test_a_folder_goes_with_its_engine(tmp_path: Path) -> None:
    folder = SocketFolder(tmp_path)
    (folder.path / "socket").touch()
    folder.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [None, "/somewhere/else"])
def test_vllm_is_told_of_it_while_its_engine_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """An engine that another part of the process starts afterwards would look in vain."""
    told = ("VLLM_RPC_BASE_PATH", "TMPDIR")
    compiled = "TORCHINDUCTOR_CACHE_DIR"
    for name in (*told, compiled):
        monkeypatch.delenv(name, raising=False)
        if before is not None:
            monkeypatch.setenv(name, before)
    folder = SocketFolder(tmp_path)
    with folder.given_to_vllm():
        assert {os.environ[name] for name in told} == {str(folder.path)}
        assert os.environ[compiled] == (before or default_cache_dir())
    assert {os.environ.get(name) for name in (*told, compiled)} == {before}
    folder.remove()


def test_a_live_engine_keeps_its_folder_and_a_killed_one_does_not(tmp_path: Path) -> None:
    live = SocketFolder(tmp_path)
    (live.path / "socket").touch()
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 2
    other = SocketFolder(tmp_path)
    assert {folder.name for folder in tmp_path.iterdir()} == {live.path.name, other.path.name}
    assert (live.path / "socket").exists()
    live.remove()
    other.remove()
    assert not list(tmp_path.iterdir())


def test_an_engine_that_starts_meanwhile_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, others = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", take)
        others.append(SocketFolder(tmp_path))
        take(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    folder = SocketFolder(tmp_path)
    assert folder.path.exists()
    SocketFolder(tmp_path).remove()
    assert folder.path.exists()
    assert [other.path.exists() for other in others] == [True]


def test_what_is_not_an_engines_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "vllm-cache").mkdir()
    (tmp_path / "vllm-cache" / "file").touch()
    SocketFolder(tmp_path).remove()
    assert (tmp_path / "vllm-cache" / "file").exists()
