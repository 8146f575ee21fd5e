"""What follows from the times at which rows and audio come. Pure.

Times are of one clock, in seconds.
"""

from __future__ import annotations


class RowTimes:
    """When the engine wrote the rows of one utterance or answer."""

    def __init__(self) -> None:
        self.first: float | None = None
        self._last = 0.0
        self._with_first = 0
        self._rows = 0

    def add(self, rows: int, at: float) -> None:
        """``rows``, at least 1, have come."""
        if self.first is None:
            self.first, self._with_first = at, rows
        self._last = at
        self._rows += rows

    @property
    def per_row(self) -> float | None:
        """Seconds per row after the first; None unless some came later."""
        later = self._rows - self._with_first
        if self.first is None or later == 0:
            return None
        return (self._last - self.first) / later


class AudioTimes:
    """When the audio of one request came, for a player that begins with the first piece.

    Attributes:
        seconds: of audio so far.
        gaps: between a piece and the one before it, in order.
        underrun: seconds that playback has stood still at most.
    """

    def __init__(self) -> None:
        self.first: float | None = None
        self.seconds = 0.0
        self.gaps: list[float] = []
        self.underrun = 0.0
        self._last = 0.0

    def add(self, seconds: float, at: float) -> None:
        """A piece of so many seconds has come."""
        if self.first is None:
            self.first = at
        else:
            self.gaps.append(at - self._last)
            self.underrun = max(self.underrun, at - self.first - self.seconds)
        self._last = at
        self.seconds += seconds

    def real_time_factor(self, began: float) -> float | None:
        """Seconds from ``began`` to the last piece per second of audio; None without audio."""
        return (self._last - began) / self.seconds if self.seconds else None
