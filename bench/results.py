"""The results of a run: a JSON file for each part, which a later run need not measure again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.findings import Findings
from deployments import whole_file

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """One part, measured or failed.

    Attributes:
        part: its name.
        device: ``cpu`` or ``cuda``.
        began: UTC, ISO 8601.
        seconds: it took.
        machine: see :func:`bench.machine.describe`.
        load: one-minute load average before and after.
        findings: None where it failed.
        error: why it failed.
    """

    part: str
    profile: str
    device: str
    began: str
    seconds: float
    machine: dict[str, Any]
    load: tuple[float, float]
    findings: Findings | None
    error: str | None = None

    @property
    def measured(self) -> bool:
        """Whether the harness did its work, whatever the verdicts."""
        return self.findings is not None

    def answers(self, profile: str, device: str, commit: str) -> bool:
        """Whether a run with this profile, on this device and code, need not measure it again."""
        known = str(self.machine["commit"])
        return self.measured and (self.profile, self.device, known) == (profile, device, commit)

    def write(self, folder: Path) -> None:
        """Replaces the part's file, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1) + "\n"
        whole_file.write(folder / f"{self.part}.json", text)


def read(folder: Path, part: str) -> Result | None:
    """The part's result, if it has one."""
    path = folder / f"{part}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text())
    found = None if data["findings"] is None else Findings.from_json(data["findings"])
    return Result(**{**data, "load": tuple(data["load"]), "findings": found})


def read_all(folder: Path, parts: Iterable[str]) -> list[Result]:
    """The results there are, in the order of ``parts``."""
    return [result for part in parts if (result := read(folder, part)) is not None]
