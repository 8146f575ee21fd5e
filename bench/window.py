"""From the arrival times of rows to the time of a decode step. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple


class MeasurementError(RuntimeError):
    """A measurement that does not show what it should; the harness has failed."""


class Reading(NamedTuple):
    """Seconds on three clocks: wall time, and CPU time of the engine and of its client."""

    wall: float
    engine_cpu: float
    client_cpu: float


@dataclass
class Trajectory:
    """When the rows of one request arrived.

    Attributes:
        readings: of each message, ascending.
        rows: rows received until then, that message's included.
    """

    readings: list[Reading] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Rows received."""
        return self.rows[-1] if self.rows else 0

    def add(self, reading: Reading, rows: int) -> None:
        """Notes a message with ``rows`` new rows."""
        self.readings.append(reading)
        self.rows.append(self.total + rows)

    def reached(self, row: int) -> float:
        """Wall time at which row number ``row`` (from 1) had arrived."""
        if row > self.total:
            raise MeasurementError(f"row {row} never came; {self.total} did")
        return self.readings[bisect_left(self.rows, row)].wall


@dataclass(frozen=True)
class Window:
    """What one measurement gave: means over its decode steps.

    Attributes:
        step_ms: milliseconds per decode step with every request in flight.
        engine_cpu_ms, client_cpu_ms: CPU time of the engine's and of the client's process per
            step. Unlike ``step_ms`` they hardly change when something else runs.
        steps: decode steps counted.
        rows_per_message: mean rows of a request per message in the window; well above 1 when the
            front end, not the engine, sets the pace.
    """

    step_ms: float
    engine_cpu_ms: float
    client_cpu_ms: float
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
    windows = [_window(t, opens, closes) for t in trajectories]
    least = min(window.steps for window in windows)
    if least < least_steps:
        raise MeasurementError(
            f"all requests were in flight for {least} steps only, not {least_steps}"
        )
    return Window(
        step_ms=median(w.step_ms for w in windows),
        engine_cpu_ms=median(w.engine_cpu_ms for w in windows),
        client_cpu_ms=median(w.client_cpu_ms for w in windows),
        steps=round(median(w.steps for w in windows)),
        rows_per_message=median(w.rows_per_message for w in windows),
    )


def _window(trajectory: Trajectory, opens: float, closes: float) -> Window:
    """One request's view of the time between two moments."""
    start = bisect_left(trajectory.readings, opens, key=_wall)
    stop = bisect_right(trajectory.readings, closes, key=_wall) - 1
    if stop <= start:
        return Window(0.0, 0.0, 0.0, 0, 0.0)
    steps = trajectory.rows[stop] - trajectory.rows[start]
    begun, ended = trajectory.readings[start], trajectory.readings[stop]
    wall, engine, client = (1000 * (b - a) / steps for a, b in zip(begun, ended, strict=True))
    return Window(wall, engine, client, steps, steps / (stop - start))


def _wall(reading: Reading) -> float:
    return reading.wall
