"""What a connection that speaks for long may have."""

from __future__ import annotations

import time

AHEAD_SECONDS = 60.0
"""Of audio that is sent before whoever plays it comes to it."""


class Allowance:
    """So much audio, and not much sooner than it is heard.

    What a client does not read waits in Serve's proxy, and nothing tells the front end. One that
    plays what it gets and reads it no sooner costs ``AHEAD_SECONDS`` of audio; one that never
    reads, all it is allowed.

    Attributes:
        left: seconds of audio that it may still have.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.interrupt()

    def interrupt(self) -> None:
        """What was sent is not going to be heard."""
        self._heard = 0.0  # all of it by then, as ``time.monotonic`` counts

    def spend(self, seconds: float) -> float:
        """Takes audio that is sent.

        Returns:
            Seconds to wait before more of it.
        """
        self.left -= seconds
        now = time.monotonic()
        self._heard = max(self._heard, now) + seconds
        return max(0.0, self._heard - now - AHEAD_SECONDS)
