"""The logits an engine computes, out of its worker process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine_adapter.engine import SpeechEngine


def allow() -> None:
    """Lets functions be sent to workers; to be called before the engine starts. Measurements only:
    a service never sets it."""
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"


async def start(engine: SpeechEngine) -> None:
    """From now on the logits of audio rows are kept."""
    await engine._engine.collective_rpc(_keep)


async def take(engine: SpeechEngine, folder: Path) -> list[Tensor]:
    """What was kept since ``start`` or the last ``take``: for every audio step float32
    ``[rows, candidates]``, all groups of streams after one another, in the order of the steps."""
    path = folder / "logits.pt"
    await engine._engine.collective_rpc(_write, args=(str(path),))
    kept: list[Tensor] = torch.load(path, weights_only=True)
    return kept


def _keep(worker: Any) -> None:
    kept: list[Tensor] = []

    def note(_: Any, __: Any, logits: Sequence[Tensor]) -> None:
        # A copy: guidance and masks are written into the logits.
        kept.append(torch.cat([part.flatten(1) for part in logits], dim=1).float().cpu().clone())

    worker.model_runner.get_model().codec_heads.register_forward_hook(note)
    worker.kept_logits = kept


def _write(worker: Any, path: str) -> None:
    torch.save(list(worker.kept_logits), path)
    worker.kept_logits.clear()
