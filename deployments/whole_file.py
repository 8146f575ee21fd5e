"""Files whose being there says that they are whole."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: str) -> None:
    """Writes a file at once: whoever is interrupted leaves none, or the one that was there.

    Raises:
        OSError: it cannot be written.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)
