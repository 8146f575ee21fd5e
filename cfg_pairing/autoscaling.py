"""How many replicas a model should have: by rows, waiting, and audio that is owed. Pure.

Requests say little: a guided one takes two rows, and one of a minute takes them sixty times as
long as one of a second. So three things are asked, and the largest answer counts:

- *rows*: as many replicas as keep the rows that are needed below ``high_use`` of all rows;
- *waiting*: if a request has waited longer than ``queue_seconds``, as many more as the waiting
  rows fill;
- *audio*: as many as make the audio that is owed within ``clear_seconds``.

More replicas come once the answer has been larger for ``up_seconds``. They go when fewer would
have done throughout ``down_seconds``, with the rows of the last ``smooth_seconds`` on average
below ``low_use``. Between the two uses nothing changes. A model whose least number is zero loses
its last replica after ``idle_seconds`` without any request.

Times are seconds on any clock that does not go back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_NO_ROWS = 0.01  # an average that comes down to zero never gets there


@dataclass(frozen=True)
class ScalingPolicy:
    """The numbers above, and the bounds of the answer."""

    min_replicas: int = 1
    max_replicas: int = 1
    high_use: float = 0.8
    low_use: float = 0.7
    queue_seconds: float = 1.0
    clear_seconds: float = 30.0
    up_seconds: float = 10.0
    down_seconds: float = 180.0
    smooth_seconds: float = 10.0
    idle_seconds: float = 900.0


@dataclass(frozen=True)
class ReplicaSignals:
    """What a replica says.

    Attributes:
        rows: needed by all its requests.
        waiting_rows: of those, by the ones that wait.
        capacity: rows of a step.
        queue_age: seconds that the longest waiting request has waited.
        audio_owed: seconds of audio that its requests are still to get.
        audio_rate: seconds of audio per second that it makes with all rows busy; 0: it has not
            made any yet.
    """

    rows: float
    waiting_rows: float
    capacity: float
    queue_age: float = 0.0
    audio_owed: float = 0.0
    audio_rate: float = 0.0


@dataclass(frozen=True)
class ScalingState:
    """What is remembered from one decision to the next.

    Attributes:
        at: time of the last decision.
        decided: what it was.
        rows: that were needed then, on average of the last ``smooth_seconds``.
        above: since when more replicas are wanted; None: they are not.
        enough: times and answers of the last ``down_seconds``; an answer is left out if a later
            one is as large.
        busy: when there was last any request.
    """

    at: float
    decided: int
    rows: float
    above: float | None
    enough: tuple[tuple[float, int], ...]
    busy: float


def decide(
    policy: ScalingPolicy,
    replicas: Sequence[ReplicaSignals],
    homeless: float,
    target: int,
    now: float,
    state: ScalingState | None,
) -> tuple[int, ScalingState]:
    """How many replicas there should be.

    Args:
        replicas: those that run.
        homeless: requests that have found no replica yet.
        target: what was decided before, here or, from no replica to the first, by Serve itself;
            more than run while some are starting.
        state: what came with that decision; None: there was none.
    """
    rows = homeless + sum(replica.rows for replica in replicas)
    if state is None:
        # What was before is not known: it may have needed what there is.
        state = ScalingState(now, target, rows, None, ((now, target),), now)
    weight = 1 - math.exp(-(now - state.at) / policy.smooth_seconds)
    smooth = state.rows + weight * (rows - state.rows)
    if smooth < _NO_ROWS:
        smooth = 0.0
    capacity = _mean([replica.capacity for replica in replicas])
    pressing = max(_waiting(policy, replicas, capacity), _audio(policy, replicas))
    wanted = max(pressing, _rows(rows, capacity, policy.high_use))
    enough = max(pressing, _rows(smooth, capacity, policy.low_use))
    above = None
    decision = target
    if wanted > target:
        above = now if state.above is None else state.above
        if target == 0 or now - above >= policy.up_seconds:
            decision, above, enough = wanted, None, wanted
    answers = tuple(
        (at, n) for at, n in state.enough if n > enough and now - at < policy.down_seconds
    )
    answers += ((now, enough),)
    decision = min(decision, max(n for _, n in answers))
    busy = now if rows or target > state.decided else state.busy
    idle = now - busy >= policy.idle_seconds
    lowest = policy.min_replicas if idle else max(1, policy.min_replicas)
    decision = min(policy.max_replicas, max(lowest, decision))
    return decision, ScalingState(now, decision, smooth, above, answers, busy)


def _rows(rows: float, capacity: float, use: float) -> int:
    if not capacity:
        return math.ceil(min(rows, 1))
    return math.ceil(rows / (capacity * use))


def _waiting(policy: ScalingPolicy, replicas: Sequence[ReplicaSignals], capacity: float) -> int:
    if all(replica.queue_age <= policy.queue_seconds for replica in replicas):
        return 0
    waiting = sum(replica.waiting_rows for replica in replicas)
    return len(replicas) + max(1, math.ceil(waiting / capacity))


def _audio(policy: ScalingPolicy, replicas: Sequence[ReplicaSignals]) -> int:
    rate = _mean([replica.audio_rate for replica in replicas if replica.audio_rate > 0])
    owed = sum(replica.audio_owed for replica in replicas)
    return math.ceil(owed / (rate * policy.clear_seconds)) if rate else 0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
