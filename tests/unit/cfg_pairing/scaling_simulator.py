"""A service whose number of replicas a policy decides, second by second.

Nothing of the product but the policy: replicas take a while to start, hold rows for as long as
requests say, and end when what they serve has ended. Serve's default policy is stated again
here from its documentation, with its default delays.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cfg_pairing.autoscaling import ReplicaSignals, ScalingPolicy, ScalingState, decide

START_SECONDS = 60  # of a replica: a container that is there, weights that are read
ROWS = 16  # of a replica
REAL_TIME = 4.0  # seconds of audio that a busy row makes in one
SLO_SECONDS = 1.0  # that a request may wait


@dataclass(frozen=True)
class Arrival:
    """A request: when it comes, how many rows it takes, for how many seconds."""

    second: int
    rows: int
    seconds: int


@dataclass
class _Request:
    arrival: Arrival
    began: int = -1


@dataclass
class Replica:
    """One replica; ``ready`` is the second from which it serves."""

    ready: int
    ending: bool = False
    requests: list[_Request] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(request.arrival.rows for request in self.requests)


@dataclass(frozen=True)
class View:
    """What a policy sees."""

    now: int
    target: int
    running: Sequence[Replica]
    waiting: Sequence[Arrival]

    @property
    def requests(self) -> int:
        return sum(len(replica.requests) for replica in self.running) + len(self.waiting)


@dataclass(frozen=True)
class Outcome:
    """What it came to.

    Attributes:
        misses: requests that waited longer than ``SLO_SECONDS``.
        replica_hours: paid for, start and end included.
        changes: of the number of replicas.
    """

    requests: int
    misses: int
    replica_hours: float
    changes: int


Decide = Callable[[View], int]


def simulate(arrivals: Sequence[Arrival], policy: Decide, first: int = 1) -> Outcome:
    """Runs until everything is served."""
    coming = deque(sorted(arrivals, key=lambda arrival: arrival.second))
    replicas = [Replica(ready=0) for _ in range(first)]
    waiting: deque[Arrival] = deque()
    target, now, misses, paid, changes = first, 0, 0, 0, 0
    while coming or waiting or any(replica.requests for replica in replicas):
        while coming and coming[0].second <= now:
            waiting.append(coming.popleft())
        for replica in replicas:
            replica.requests = [r for r in replica.requests if now - r.began < r.arrival.seconds]
        replicas = [r for r in replicas if not r.ending or r.requests]
        running = [r for r in replicas if r.ready <= now and not r.ending]
        while waiting and running:
            best = min(running, key=lambda replica: replica.rows)
            if best.rows + waiting[0].rows > ROWS:
                break
            arrival = waiting.popleft()
            misses += now - arrival.second > SLO_SECONDS
            best.requests.append(_Request(arrival, now))
        decided = policy(View(now, target, running, waiting))
        changes += decided != target
        target = decided
        live = [replica for replica in replicas if not replica.ending]
        for _ in range(target - len(live)):
            replicas.append(Replica(ready=now + START_SECONDS))
        # Those that are not ready go first, then the emptiest.
        spare = sorted(live, key=lambda r: (r.ready <= now, r.rows))[: max(0, len(live) - target)]
        for replica in spare:
            replica.ending = True
        paid += len(replicas)
        now += 1
    return Outcome(len(arrivals), misses, paid / 3600, changes)


def ours(policy: ScalingPolicy) -> Decide:
    """The product's policy, which sees signals of every other second."""
    state: ScalingState | None = None
    target = 1

    def decided(view: View) -> int:
        nonlocal state, target
        if view.now % 2 == 0:
            target, state = decide(policy, _signals(view), 0, view.target, view.now, state)
        return target

    return decided


def _signals(view: View) -> list[ReplicaSignals]:
    running = max(1, len(view.running))
    rows = sum(arrival.rows for arrival in view.waiting) / running
    age = view.now - view.waiting[0].second if view.waiting else 0
    owed = sum(arrival.seconds for arrival in view.waiting) * REAL_TIME / running
    return [
        ReplicaSignals(
            rows=replica.rows + rows,
            waiting_rows=rows,
            capacity=ROWS,
            queue_age=age,
            audio_owed=owed + REAL_TIME * sum(_left(r, view.now) for r in replica.requests),
            audio_rate=REAL_TIME * ROWS,
        )
        for replica in view.running
    ]


def _left(request: _Request, now: int) -> int:
    return max(0, request.arrival.seconds - (now - request.began))


def serves_default(
    ongoing: float, most: int, *, up_seconds: float = 30, down_seconds: float = 600
) -> Decide:
    """Ray Serve's: requests, averaged over half a minute, over requests per replica; a change
    is made when it has been wanted for a while, without a break."""
    recent: deque[int] = deque(maxlen=30)
    wanted_since: tuple[int, int] | None = None  # direction, second

    def decided(view: View) -> int:
        nonlocal wanted_since
        recent.append(view.requests)
        if not view.running:
            return view.target
        desired = math.ceil(sum(recent) / len(recent) / ongoing)
        desired = min(most, max(1, desired))
        direction = (desired > view.target) - (desired < view.target)
        if direction == 0:
            wanted_since = None
            return view.target
        if wanted_since is None or wanted_since[0] != direction:
            wanted_since = (direction, view.now)
        delay = up_seconds if direction > 0 else down_seconds
        if view.now - wanted_since[1] < delay:
            return view.target
        wanted_since = None
        return desired

    return decided
