"""What a service has written down about its answers."""

import json
from pathlib import Path
from typing import Any


def audited(directory: Path) -> list[dict[str, Any]]:
    """The entries of every front end's file under ``directory/audit.jsonl``, so far."""
    return [
        json.loads(line)
        for file in directory.glob("audit-*.jsonl")
        for line in file.read_text().splitlines()
    ]
