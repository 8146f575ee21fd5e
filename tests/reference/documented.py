"""The family that docs/new-family.md makes up, as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from engine_adapter.spec import StreamSpec

_PAGE = Path(__file__).parents[2] / "docs" / "new-family.md"


def documented_family() -> StreamSpec:
    """The spec in the page's JSON."""
    (block,) = re.findall(r"^```json\n(.*?)^```", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return StreamSpec.from_dict(json.loads(block))
