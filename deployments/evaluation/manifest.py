"""What is asked of a model: one JSON object a line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from deployments.validation import first_field
from engine_adapter.reasons import reason

Task = Literal["speech", "transcription"]


class ManifestError(ValueError):
    """A manifest cannot be used; the message names the line and the field."""


class Item(BaseModel):
    """One line.

    Attributes:
        id: unique within the file.
        text: to be spoken, or what is said in ``audio``.
        audio: a recording to write down; relative to the manifest's folder.
        voice, cfg_scale, seed: of speech; None leaves them to the service, the seed to be 0.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: str | int
    task: Task = "speech"
    text: str
    audio: str | None = None
    voice: str | None = None
    cfg_scale: float | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _fits_its_task(self) -> Item:
        if not self.text.strip():
            raise ValueError("text: is empty")
        if (self.task == "transcription") != (self.audio is not None):
            raise ValueError("audio: a transcription has it, speech does not")
        return self

    def key(self, model: str, recording: bytes = b"") -> str:
        """Names the answer: equal for items that ask the same of the same model.

        Args:
            recording: what ``audio`` holds.
        """
        asked = [model, self.model_dump(exclude={"id"}), hashlib.sha256(recording).hexdigest()]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]


def read(path: Path) -> list[Item]:
    """The items of a file; blank lines are none.

    Raises:
        ManifestError: it is missing or empty, a line is no item, or an id comes twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {reason(error)}") from error
    items: dict[str, Item] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = Item.model_validate_json(line)
        except ValidationError as error:
            raise ManifestError(f"{path}, line {number}: {_fault(error)}") from error
        if str(item.id) in items:
            raise ManifestError(f"{path}, line {number}: id: {item.id!r} is an earlier line's")
        items[str(item.id)] = item
    if not items:
        raise ManifestError(f"{path}: is empty")
    return list(items.values())


def _fault(error: ValidationError) -> str:
    return first_field(error.errors())[1]
