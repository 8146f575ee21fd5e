"""Files that nobody but their owner reads."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make(path: Path) -> None:
    """Makes an empty file, mode 0600, if there is none. What SQLite writes beside it is as private.

    Raises:
        OSError: it cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
