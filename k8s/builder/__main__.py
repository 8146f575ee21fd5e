"""Writes them: ``python -m k8s.builder``, from the folder of the project."""

from __future__ import annotations

import json
from pathlib import Path

from k8s.builder.capacity import CAPACITY
from k8s.builder.engine import ENGINE
from k8s.builder.overview import OVERVIEW
from k8s.builder.schema import values_schema
from k8s.builder.vocoder import VOCODER

DASHBOARDS = (OVERVIEW, ENGINE, VOCODER, CAPACITY)
CHART = Path(__file__).parents[1] / "speechlm"


def generated() -> dict[Path, str]:
    """What each generated file has to hold."""
    files = {CHART / f"dashboards/{board.name}.json": board.json() for board in DASHBOARDS}
    files[CHART / "values.schema.json"] = values_schema()
    return {path: json.dumps(made, indent=1, sort_keys=True) + "\n" for path, made in files.items()}


def main() -> None:
    """Writes all of them."""
    for path, text in generated().items():
        path.write_text(text)
        print(path.relative_to(Path.cwd()))


if __name__ == "__main__":
    main()
