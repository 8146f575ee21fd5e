"""What a safetensors file holds, from its header alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_header(file: Path) -> dict[str, dict[str, Any]]:
    """``dtype``, ``shape`` and ``data_offsets`` of each tensor, by name.

    Raises:
        ValueError: it is no such file (a pointer of Git LFS, say), or its end is missing.
        OSError: it cannot be read.
    """
    total = file.stat().st_size
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        if size > total - 8:
            raise ValueError(f"{file}: is no safetensors file, or its end is missing")
        try:
            header = json.loads(opened.read(size))
            header.pop("__metadata__", None)
            end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise ValueError(f"{file}: is no safetensors file ({error})") from error
    if 8 + size + end > total:
        raise ValueError(f"{file}: its end is missing")
    return dict(header)
