"""What stops a conversion."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 5


class ConversionError(ValueError):
    """A checkpoint cannot be converted; the message names the file and what is wrong with it."""


def shortened(items: Sequence[str]) -> str:
    """The first few of ``items``, and how many more there are."""
    shown = ", ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"
