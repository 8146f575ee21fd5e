"""What a service holds on its machine: processes, descriptors, shared memory, sockets."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.serve.service_process import Service

_SHARED_MEMORY = Path("/dev/shm")
_SEGMENTS = ("psm_", "sem.mp-", "vllm", "plasma", "ray")  # of Python, vLLM and Ray
# What an actor does just now stands behind its name.
_COUNTED = re.compile(
    r"ray::(?:ServeReplica:[\w:-]+|ProxyActor|ServeController|_VocoderActor)"
    r"|VLLM::\w+|raylet/raylet|gcs/gcs_server"
)


@dataclass(frozen=True)
class Remains:
    """At one moment.

    Attributes:
        processes: of each kind that is part of the service.
        zombies: titles of those that nobody has reaped.
        descriptors: open ones of every process, by its id.
        shared: files of shared memory that no process uses.
        sockets: files of sockets that nobody listens at.
    """

    processes: Counter[str]
    zombies: tuple[str, ...]
    descriptors: dict[int, int]
    shared: frozenset[str]
    sockets: frozenset[str]

    @classmethod
    def of(cls, service: Service) -> Remains:
        """Now."""
        pids = [*service.descendants(), service.process.pid]
        titles = {pid: title(pid) for pid in pids}
        return cls(
            Counter(found[0] for t in titles.values() if (found := _COUNTED.search(t))),
            tuple(_name(pid) for pid in pids if _state(pid) == "Z"),
            {pid: _open_files(pid) for pid in pids},
            frozenset(_unused_shared_memory()),
            frozenset(_dead_sockets(service.directory)),
        )


def title(pid: int) -> str:
    """How a process calls itself; empty if it has ended."""
    return _read(pid, "cmdline").replace("\0", " ").strip()


def pids_of(service: Service, title_part: str) -> list[int]:
    """The processes of a service whose title has this in it."""
    return [pid for pid in service.descendants() if title_part in title(pid)]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _state(pid: int) -> str:
    return (_read(pid, "stat").rpartition(")")[2].split() or [""])[0]


def _name(pid: int) -> str:
    return _read(pid, "comm").strip()


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _unused_shared_memory() -> Iterator[str]:
    # Others on this machine have some, too: theirs is in use.
    maps = "".join(_read(int(e.name), "maps") for e in Path("/proc").glob("[0-9]*"))
    used = {line.split()[4] for line in maps.splitlines() if f" {_SHARED_MEMORY}/" in line}
    for file in os.scandir(_SHARED_MEMORY):
        if file.name.startswith(_SEGMENTS) and str(file.inode()) not in used:
            yield file.name


def _dead_sockets(directory: Path) -> Iterator[str]:
    listening = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()}
    for folder, _, files in os.walk(directory):
        for file in files:
            path = os.path.join(folder, file)
            if stat.S_ISSOCK(os.lstat(path).st_mode) and path not in listening:
                yield path
