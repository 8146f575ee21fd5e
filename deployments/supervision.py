"""A service in a child process: told to end at any moment, it ends, and nothing of it is left.

What Ray does to its own process (signal handlers, exits, crashes) happens to the child. Its parent
loads nothing, so that it can always remove what the child and the child's children leave.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from deployments import processes
from deployments.commands import CommandError, tell
from engine_adapter import socket_folder

_PATIENCE_SECONDS = 5.0
_ENDS = (signal.SIGINT, signal.SIGTERM)
_AWAITED = (*_ENDS, signal.SIGCHLD)
# Not one of those that everybody in a process group or a container may be sent.
_TO_CHILD = signal.SIGUSR1
_READY = "ready"
_PR_SET_PDEATHSIG = 1


class Stop(BaseException):
    """SIGINT or SIGTERM came. Raised in the main thread of the child, once it is ready."""


def ready(directory: Path) -> None:
    """Notes that there may be answers to wait for; before, the child is killed without a word."""
    (directory / _READY).touch()


def logs(directory: Path) -> Path:
    """Where Ray and all that runs in it write theirs."""
    return directory / "session_latest" / "logs"


def run(serve: Callable[[Path], None]) -> int:
    """Has a child serve in a new directory of its own, until it ends or is to end.

    The first SIGINT or SIGTERM lets it end what it does, the second kills it. Its directory goes
    with it; only where it failed by itself, the logs in it are kept.

    Args:
        serve: called in the child with the directory, whose path is short.

    Returns:
        The exit code.

    Raises:
        CommandError: there can be no directory, or the child was killed by something else.
    """
    processes.adopt_orphans()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        directory = Path(tempfile.mkdtemp(prefix="speechlm-"))
    except OSError as error:
        raise CommandError(f"no directory for temporary files: {error.strerror}") from error
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        _be_child(serve, directory, before)
    asked, code = _await(child, directory)
    if asked > 1:
        processes.kill_descendants()
    else:
        processes.end_descendants(_PATIENCE_SECONDS)
    if asked or not logs(directory).exists():
        shutil.rmtree(directory, ignore_errors=True)
    socket_folder.remove_abandoned()
    while signal.sigtimedwait(_AWAITED, 0) is not None:
        pass  # a signal more, while this was ending anyway
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if asked:
        print("stopped", flush=True)
        return 0 if asked == 1 else 1
    if code < 0:
        raise CommandError(
            f"the service was ended by {signal.Signals(-code).name}\nlogs: {logs(directory)}"
        )
    return code


def _await(child: int, directory: Path) -> tuple[int, int]:
    """How often it was to end before it did, and its exit code, negative for a signal."""
    asked = 0
    while True:
        number = signal.sigwait(_AWAITED)
        if number == signal.SIGCHLD:
            code = _reap(child)
            if code is not None:
                return asked, code
            continue
        asked += 1
        if asked == 1 and (directory / _READY).exists():
            os.kill(child, _TO_CHILD)
            continue
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return asked, 0


def _reap(child: int) -> int | None:
    """Takes note of the children that have ended: this one, and adopted orphans.

    Returns:
        The exit code of this one; None: it goes on.
    """
    found = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid == child:
                found = os.waitstatus_to_exitcode(status)
    return found


def _be_child(
    serve: Callable[[Path], None], directory: Path, mask: set[signal.Signals | int]
) -> NoReturn:
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(_TO_CHILD, _stop)
        for number in _ENDS:
            # The parent decides, whoever else is sent it. Not SIG_IGN, which children inherit.
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        serve(directory)
        code = 0
    except Stop:
        code = 0
    except CommandError as error:
        tell(error)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)  # what Ray has loaded does not always survive the interpreter's end


def _stop(_: int, __: FrameType | None) -> NoReturn:
    signal.signal(_TO_CHILD, signal.SIG_IGN)
    raise Stop
