"""Where a model's files are, from the ``path`` of its settings."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from engine_adapter.families import FAMILIES
from engine_adapter.spec import SpecError, StreamSpec

_TINY = "tiny:"


def default_cache() -> Path:
    """Where models that are made here are kept, under the current directory."""
    return Path(".cache/models")


def locate(path: str, cache: Path | None = None) -> Path:
    """The absolute directory of a model; a ``tiny:FAMILY`` is made on first use, and anew
    where its family is no longer what it was.

    Raises:
        FileNotFoundError: there is no such directory.
        ValueError: there is no such family.
    """
    if path.startswith(_TINY):
        return _tiny(path.removeprefix(_TINY), default_cache() if cache is None else cache)
    directory = Path(path).resolve()
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: no such model directory")
    return directory


def _tiny(family: str, cache: Path) -> Path:
    directory = (cache / f"{family}-tiny").resolve()
    if _is_of(family, directory):
        return directory
    from engine_adapter.tiny import make_tiny  # brings torch, which is slow to import

    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")
    # In one step, so that nobody sees half a model; whoever comes second loses nothing.
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{family}-") as scratch:
        made = make_tiny(family, Path(scratch) / "model")
        if not _is_of(family, directory):
            with suppress(FileNotFoundError):
                os.rename(directory, Path(scratch) / "outdated")
        try:
            os.rename(made, directory)
        except OSError:
            if not directory.is_dir():
                raise
    return directory


def _is_of(family: str, directory: Path) -> bool:
    try:
        return StreamSpec.load(directory) == FAMILIES.get(family)
    except SpecError:
        return False
