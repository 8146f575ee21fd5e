"""How busy a decoder is."""

from __future__ import annotations

import math

_MEMORY_SECONDS = 2.0


class BusyShare:
    """The share of the last seconds that was spent decoding, older ones counting less."""

    def __init__(self) -> None:
        self._share = 0.0
        self._at = -math.inf  # of the last change, in seconds

    def add(self, busy: float, now: float) -> None:
        """Counts ``busy`` seconds of work that ended just now."""
        since = max(busy, now - self._at)
        new = 1 - math.exp(-since / _MEMORY_SECONDS)
        self._share += new * (busy / since - self._share) if since > 0 else 0.0
        self._at = now

    def learn(self, share: float, now: float) -> None:
        """Takes over a share that was measured elsewhere just now."""
        self._share = share
        self._at = now

    def value(self, now: float) -> float:
        """The share, 0 to 1; it fades while nothing is added."""
        return self._share * math.exp(-max(0.0, now - self._at) / _MEMORY_SECONDS)
