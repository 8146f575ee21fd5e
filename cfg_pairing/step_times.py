"""How long the engine's steps take, counted where they happen. Pure."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds in seconds of the classes that steps are counted in; above is one more."""


class StepTimes:
    """Steps by their duration, since the engine started."""

    def __init__(self) -> None:
        self._steps = 0
        self._seconds = 0.0
        self._tokens = 0
        self._classes = [0] * (len(BOUNDS) + 1)

    def add(self, seconds: float, tokens: int) -> None:
        """Counts a step that has computed so many tokens."""
        self._steps += 1
        self._seconds += seconds
        self._tokens += tokens
        self._classes[bisect_left(BOUNDS, seconds)] += 1

    def to_dict(self) -> dict[str, Any]:
        """``steps``, ``step_seconds`` and ``step_tokens`` of all, ``step_classes`` by duration."""
        return {
            "steps": self._steps,
            "step_seconds": self._seconds,
            "step_tokens": self._tokens,
            "step_classes": list(self._classes),
        }
