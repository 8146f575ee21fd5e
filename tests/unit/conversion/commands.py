"""Arguments of ``speechlm convert`` for checkpoints of the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.official.checkpoint import OfficialCheckpoint

Writer = Callable[[Path], OfficialCheckpoint]
Official = Callable[[Writer], OfficialCheckpoint]
Refusal = Callable[[list[str]], str]
State = dict[str, Any]


def arguments_of(checkpoint: OfficialCheckpoint, file: Path) -> list[str]:
    """Of a conversion of another file in the place of the checkpoint's."""
    arguments = checkpoint.arguments
    arguments[arguments.index("--checkpoint") + 1] = str(file)
    if checkpoint.family != "bagpiper":
        arguments += ["--config", str(checkpoint.file.parent / "config.yaml")]
    return arguments


def changed(checkpoint: OfficialCheckpoint, tmp_path: Path, change: Callable[[State], Any]) -> Path:
    """The checkpoint after ``change`` was done to its state dict."""
    content = torch.load(checkpoint.file, weights_only=True)
    change(content.get("module", content))
    file = tmp_path / f"changed{checkpoint.file.suffix}"
    torch.save(content, file)
    return file
