"""Counters that prove what happened to every guided pair."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class PairLedger:
    """Pairs by what happened to them.

    Attributes:
        admitted: guided requests whose first row was admitted.
        joined: pairs whose two rows took their first lock-step.
        preempted: times a guided request gave all its rows and blocks back.
        resumed: times a preempted one was admitted again.
        finished, aborted, failed: how the admitted ones ended.
        rows_split: pairs scheduled with one row of a lock-step missing; must stay 0.
        unguided_frames: audio rows of guided requests sampled without their
            unconditional row; must stay 0.
    """

    admitted: int = 0
    joined: int = 0
    preempted: int = 0
    resumed: int = 0
    finished: int = 0
    aborted: int = 0
    failed: int = 0
    rows_split: int = 0
    unguided_frames: int = 0

    def count(self, event: str) -> None:
        """Adds one to the counter named ``event``."""
        setattr(self, event, getattr(self, event) + 1)

    def to_dict(self) -> dict[str, int]:
        """The counters by name."""
        return asdict(self)

    def violations(self, live: int) -> list[str]:
        """Invariants that do not hold.

        Args:
            live: guided requests that were admitted and have not ended.
        """
        ended = self.finished + self.aborted + self.failed
        wrong = []
        if self.rows_split:
            wrong.append(f"{self.rows_split} rows were split")
        if self.unguided_frames:
            wrong.append(f"{self.unguided_frames} frames were sampled unguided")
        if self.admitted != ended + live:
            wrong.append(f"{self.admitted} admitted, but {ended} ended and {live} live")
        if not self.joined <= self.admitted or not self.resumed <= self.preempted:
            wrong.append("more joined than admitted, or more resumed than preempted")
        return wrong
