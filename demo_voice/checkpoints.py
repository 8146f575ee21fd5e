"""Training state on disk: saved now and then, found again after an interruption."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

SECONDS_BETWEEN = 120.0


class Checkpoint:
    """The state of one training run in one file, replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """What was saved last, or None."""
        if not self._path.exists():
            return None
        state: dict[str, Any] = torch.load(self._path, weights_only=True)
        return state

    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._saved > SECONDS_BETWEEN

    def save(self, state: dict[str, Any]) -> None:
        """Replaces what was saved before."""
        part = self._path.with_name(f".{os.getpid()}-{self._path.name}")
        torch.save(state, part)
        part.rename(self._path)
        self._saved = time.monotonic()


def learning_rate(step: int, *, steps: int, warmup: int, decay: float, peak: float) -> float:
    """A linear rise over ``warmup`` steps, a plateau, a linear fall to 0 over the last share."""
    fall = (steps - step) / max(1, round(steps * decay))
    return peak * max(0.0, min((step + 1) / warmup, 1.0, fall))
