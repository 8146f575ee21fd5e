"""From the arrival times of rows to the time of a decode step. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


class MeasurementError(RuntimeError):
    """A measurement that does not show what it should; the harness has failed."""


@dataclass
class Trajectory:
    """When the rows of one request arrived.

    Attributes:
        times: seconds of each message, ascending.
        rows: rows received until then, that message's included.
    """

    times: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Rows received."""
        return self.rows[-1] if self.rows else 0

    def add(self, time: float, rows: int) -> None:
        """Notes a message with ``rows`` new rows."""
        self.times.append(time)
        self.rows.append(self.total + rows)

    def reached(self, row: int) -> float:
        """Seconds at which row number ``row`` (from 1) had arrived."""
        if row > self.total:
            raise MeasurementError(f"row {row} never came; {self.total} did")
        return self.times[bisect_left(self.rows, row)]


@dataclass(frozen=True)
class Window:
    """What one measurement gave.

    Attributes:
        step_ms: milliseconds per decode step with every request in flight.
        steps: decode steps counted.
        rows_per_message: mean rows of a request per message in the window; well above 1 when the
            front end, not the engine, sets the pace.
    """

    step_ms: float
    steps: int
    rows_per_message: float


def decode_window(
    trajectories: Sequence[Trajectory], first: int, last: int, least_steps: int
) -> Window:
    """The steps in which every request decodes, prefills and ends excluded.

    The window opens when the last request has ``first`` rows and closes when the first has
    ``last`` rows. Each request counts its own rows in it; the median request decides.

    Raises:
        MeasurementError: some request saw fewer than ``least_steps`` steps in it.
    """
    opens = max(t.reached(first) for t in trajectories)
    closes = min(t.reached(last) for t in trajectories)
    seconds, steps, per_message = [], [], []
    for trajectory in trajectories:
        start = bisect_left(trajectory.times, opens)
        stop = bisect_right(trajectory.times, closes) - 1
        counted = trajectory.rows[stop] - trajectory.rows[start] if stop > start else 0
        if counted < max(1, least_steps):
            raise MeasurementError(
                f"all requests were in flight for {counted} steps only, not {least_steps}"
            )
        steps.append(counted)
        seconds.append((trajectory.times[stop] - trajectory.times[start]) / counted)
        per_message.append(counted / (stop - start))
    return Window(1000 * median(seconds), round(median(steps)), median(per_message))
