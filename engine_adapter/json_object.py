"""Files with a JSON object in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine_adapter.reasons import reason


def read_object(path: Path) -> dict[str, Any]:
    """
    Raises:
        ValueError: the file cannot be read, or has no JSON object in it; the message names it.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path}: is nested too deeply") from error
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {reason(error)}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path}: not a JSON object")
    return data
