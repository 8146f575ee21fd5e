"""From times of steps, or of the arrival of frames, to the time of one of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import NamedTuple


class MeasurementError(RuntimeError):
    """A measurement that does not show what it should; the harness has failed."""


@dataclass(frozen=True)
class Window:
    """What one measurement gave: means over its steps.

    Attributes:
        step_ms: milliseconds per step.
        engine_cpu_ms, client_cpu_ms: CPU time of the engine's and of the client's process per
            step. Unlike ``step_ms`` they hardly change when something else runs.
        lag_ms: how long after a step the client has its output; it grows without bound if
            the client does not keep up. 0 where there is no engine.
        steps: steps counted.
    """

    step_ms: float
    engine_cpu_ms: float
    client_cpu_ms: float
    lag_ms: float
    steps: int


class Step(NamedTuple):
    """A step of an engine as its client learns of it; all in seconds.

    Attributes:
        ended: on the engine's clock.
        received: on the same clock, when the client had the output.
        requests: that were given a row.
        engine_cpu, client_cpu: CPU time so far, when the client had the output.
    """

    ended: float
    received: float
    requests: int
    engine_cpu: float
    client_cpu: float


def decode_window(log: Sequence[Step], requests: int, skip: int, steps: int) -> Window:
    """The steps in which every request decodes: prefills and ends are excluded.

    Args:
        log: all steps of a measurement in order.
        requests: requests of the measurement.
        skip: steps to leave out after all are in flight.
        steps: steps to count, if there are as many.

    Raises:
        MeasurementError: there are not even a quarter as many.
    """
    run = _longest_run(log, requests)[skip : skip + steps + 1]
    counted = len(run) - 1
    if counted < max(1, steps // 4):
        raise MeasurementError(
            f"all {requests} requests were in flight for {skip + max(0, counted)} steps only"
        )
    # CPU clocks are read when the client has the output: near the edges, where that was soonest.
    margin = 1 + counted // 8
    first = min(range(margin), key=lambda i: _lag(run[i]))
    last = min(range(counted + 1 - margin, counted + 1), key=lambda i: _lag(run[i]))
    between = max(1, last - first)
    return Window(
        step_ms=1000 * (run[-1].ended - run[0].ended) / counted,
        engine_cpu_ms=1000 * (run[last].engine_cpu - run[first].engine_cpu) / between,
        client_cpu_ms=1000 * (run[last].client_cpu - run[first].client_cpu) / between,
        lag_ms=1000 * median(_lag(step) for step in run),
        steps=counted,
    )


def _lag(step: Step) -> float:
    return step.received - step.ended


def _longest_run(log: Sequence[Step], requests: int) -> list[Step]:
    """The most consecutive steps that gave every request a row."""
    runs = [
        list(group)
        for full, group in groupby(log, key=lambda step: step.requests == requests)
        if full
    ]
    return max(runs, key=len, default=[])


class Frame(NamedTuple):
    """When a client had a frame; seconds of wall time and of CPU time so far."""

    wall: float
    engine_cpu: float
    client_cpu: float


def frame_window(trajectories: Sequence[Sequence[Frame]], skip: int) -> Window:
    """The time per frame of clients that wait for one frame before they ask for the next.

    The window opens when the last of them has ``skip`` frames and closes when the first has all
    of its own; each counts its frames in it, and the median client decides.

    Raises:
        MeasurementError: a client has fewer than two frames in the window.
    """
    opens = max(t[skip - 1].wall for t in trajectories)
    closes = min(t[-1].wall for t in trajectories)
    windows = [_frames_between(t, opens, closes) for t in trajectories]
    return Window(
        step_ms=median(w.step_ms for w in windows),
        engine_cpu_ms=median(w.engine_cpu_ms for w in windows),
        client_cpu_ms=median(w.client_cpu_ms for w in windows),
        lag_ms=0.0,
        steps=round(median(w.steps for w in windows)),
    )


def _frames_between(trajectory: Sequence[Frame], opens: float, closes: float) -> Window:
    inside = [frame for frame in trajectory if opens <= frame.wall <= closes]
    steps = len(inside) - 1
    if steps < 1:
        raise MeasurementError("the clients did not run at the same time")
    wall, engine, client = (
        1000 * (b - a) / steps for a, b in zip(inside[0], inside[-1], strict=True)
    )
    return Window(wall, engine, client, 0.0, steps)
