"""Where vLLM's processes find each other: sockets and shared memory that a killed engine leaves."""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine_adapter import shared_memory

_PREFIX = "vllm-"  # short, since the path of a socket has about a hundred characters at most
_VARIABLE = "VLLM_RPC_BASE_PATH"
_TEMPORARY = "TMPDIR"
_COMPILED = "TORCHINDUCTOR_CACHE_DIR"
_LOCK = "speechlm.lock"  # tells our folders from those of other programs
_SHARED = "shared_memory"  # names of segments, one a line


class SocketFolder:
    """A new folder for one engine, whose shared memory is noted in it. Those of engines that have
    died without removing theirs are removed first: nobody holds their locks.

    Attributes:
        path: the folder.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """
        Args:
            parent: where; default: the folder of temporary files.
        """
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        remove_abandoned(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Held before it has its name, or an engine that starts meanwhile would think us dead.
        unnamed = self.path / "new"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self.path / _LOCK)

    @contextmanager
    def given_to_vllm(self) -> Iterator[None]:
        """While an engine starts: those that this process starts later have other folders."""
        # Its processes also meet at a file among their temporary ones.
        given = {_VARIABLE: str(self.path), _TEMPORARY: str(self.path)}
        # What is compiled is for the next engine, too.
        given |= {_COMPILED: os.environ.get(_COMPILED, _compiled())}
        others = shared_memory.descendants()
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            yield
        finally:
            used = shared_memory.used_by(shared_memory.descendants() - others)
            (self.path / _SHARED).write_text("\n".join(used))
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def remove(self) -> None:
        """Removes it with all that is in it, and the shared memory that vLLM has left."""
        _remove(self.path)
        os.close(self._lock)


def _compiled() -> str:
    """Where torch keeps what it compiles, if it is not told otherwise."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        user = str(os.getuid())
    return str(Path(tempfile.gettempdir()) / f"torchinductor_{user}")


def remove_abandoned(parent: Path | None = None) -> None:
    """Removes the folders of engines that have died without removing theirs.

    Args:
        parent: as of a new folder.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        _remove_unless_held(lock)


def _remove_unless_held(lock: Path) -> None:
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:  # somebody else's, or removed since
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(lock.parent)
    except BlockingIOError:
        pass  # its engine lives
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    noted = folder / _SHARED
    if noted.exists():
        shared_memory.remove(noted.read_text().splitlines())
    shutil.rmtree(folder, ignore_errors=True)
