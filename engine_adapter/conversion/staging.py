"""A directory that appears when it is complete, and not before."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine_adapter.conversion.errors import ConversionError

_MARK = ".conversion"


def check_is_free(out: Path) -> None:
    """
    Raises:
        ConversionError: ``out`` is there already, and is not an empty directory.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConversionError(f"{out}: exists and is not an empty directory")


@contextmanager
def staged(out: Path, needed: int) -> Iterator[Path]:
    """Gives an empty ``OUT.partial`` that becomes ``out`` at the end of the block.

    If the block fails it is removed; what a killed conversion has left is removed by the next.

    Args:
        out: what :func:`check_is_free` lets pass.
        needed: bytes that will be written.

    Raises:
        ConversionError: another conversion is at it, there is too little space, or there is
            something else of that name.
    """
    partial = out.absolute().with_name(out.name + ".partial")
    mark = partial / _MARK
    if partial.exists() and not mark.is_file():
        raise ConversionError(f"{partial}: exists and was not left there by a conversion")
    partial.mkdir(parents=True, exist_ok=True)
    with mark.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConversionError(f"{partial}: another conversion writes here") from error
        try:
            _empty(partial)
            free = shutil.disk_usage(partial).free
            if free < needed:
                raise ConversionError(
                    f"{out}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free"
                )
            yield partial
            check_is_free(out)
            mark.unlink()
            os.rename(partial, out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def _empty(partial: Path) -> None:
    for path in partial.iterdir():
        if path.name == _MARK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError):
                path.unlink()
