"""Shared memory of an engine's processes, which outlives those that are killed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_FOLDER = Path("/dev/shm")  # Linux's shm_open
_SEGMENTS = ("psm_", "sem.", "vllm_")  # of Python, its semaphores, and vLLM
_PROCESSES = Path("/proc")


def descendants() -> set[int]:
    """Process ids of all that this process has started and their children."""
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {child for pid in new for child in _children(pid)} - found
        found |= new
    return found


def used_by(pids: Iterable[int]) -> set[str]:
    """Names of the segments that processes have mapped and that can still be opened by name."""
    inodes = {
        int(inode)
        for pid in pids
        for line in _read(_PROCESSES / str(pid) / "maps").splitlines()
        if f" {_FOLDER}/" in line
        for _, _, _, _, inode, _ in [line.split(maxsplit=5)]
    }
    # By its inode: the maps name a semaphore as it was called while it was made.
    segments = [file for file in os.scandir(_FOLDER) if file.name.startswith(_SEGMENTS)]
    return {file.name for file in segments if file.inode() in inodes}


def remove(names: Iterable[str]) -> None:
    """Takes away the names that are still there; who has a segment mapped keeps it."""
    for name in names:
        path = _FOLDER / name
        if path.parent == _FOLDER and name.startswith(_SEGMENTS):
            path.unlink(missing_ok=True)


def _children(pid: int) -> list[int]:
    threads = _PROCESSES / str(pid) / "task"
    try:
        listed = [_read(thread / "children") for thread in threads.iterdir()]
    except FileNotFoundError:  # it has ended
        return []
    return [int(child) for children in listed for child in children.split()]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # it has ended, or is another user's
