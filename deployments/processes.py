"""Leaving no process behind: every descendant of this process, and only those."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes descendants whose parent dies children of this process, so that they are found."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def descendants() -> list[int]:
    """Process ids of everything that this process has started and that still runs."""
    parents = {pid: parent for pid, (state, parent) in _table().items() if state != "Z"}
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


def end_descendants(patience: float) -> None:
    """Asks all of them to end, and kills what still runs after ``patience`` seconds."""
    _send(signal.SIGTERM)
    deadline = time.monotonic() + patience
    while descendants() and time.monotonic() < deadline:
        time.sleep(0.05)
    kill_descendants()


def kill_descendants() -> None:
    """Kills all of them, and those they start meanwhile."""
    while descendants():
        _send(signal.SIGKILL)
        time.sleep(0.01)
    _reap()


def _table() -> dict[int, tuple[str, int]]:
    """State and parent of every process of the machine."""
    table = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # After the command's name, which may be any bytes: state, parent, ...
                state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
            table[int(entry.name)] = state.decode("ascii"), int(parent)
    return table


def _reap() -> None:
    # Not every init does it for the children of a process that exits.
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.01)


def _send(number: signal.Signals) -> None:
    for pid in descendants():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
