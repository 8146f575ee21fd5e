"""Which replica a request goes to: the one with the most room for its rows. Pure.

Room is counted in rows, since a guided request takes two, and in KV memory, whichever is
scarcer. A replica reports what it has every second or so. In between a router goes by what
it has sent and what has ended: without that, a burst would all go to the same replica. Several
routers see each other through the reports. A replica that says that its engine is dead, or that no
longer reports while others do, is chosen last: the dead have all their rows free.

Requests that begin alike are sent to the same replica, which has the beginning in its prefix
cache, as long as that replica is not much fuller than the emptiest: a row is busy for some 250
steps with an average request, and a prefix that need not be computed saves at most one step
of one row for each of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

REQUEST_STEPS = 250
"""Rows an average request writes; of how many saved ones a row of imbalance is worth."""
_INTENT_SECONDS = 2.0  # from the choice of a replica to its answer, which may already be the end
_SILENT_SECONDS = 2.5  # without a report, while others report

ReplicaKey = TypeVar("ReplicaKey", bound=Hashable)


@dataclass(frozen=True)
class Demand:
    """What a request needs.

    Attributes:
        rows: of a step.
        prefix: the same for requests whose prompts begin alike; None if nobody's does.
        prefix_rows: length of that beginning.
    """

    rows: int
    prefix: bytes | None = None
    prefix_rows: int = 0


@dataclass(frozen=True)
class LoadReport:
    """What a replica says of itself.

    Attributes:
        serial: larger with every report.
        rows: needed by all requests that it has, those that wait included.
        capacity: rows of a step.
        kv_share: of the KV cache that is in use, 0 to 1.
        lives: its engine answers.
    """

    serial: int
    rows: int
    capacity: int
    kv_share: float
    lives: bool = True


@dataclass(frozen=True)
class Load:
    """What is believed of a replica now, as in ``LoadReport``.

    Attributes:
        doubtful: it has stopped to report, or says that its engine is dead.
    """

    rows: float
    capacity: int
    kv_share: float
    doubtful: bool = False

    def pressure(self, more: int) -> float:
        """Use of the scarcer of rows and KV memory with ``more`` rows; 1 is full."""
        rows = self.rows + more
        kv = self.kv_share * rows / self.rows if self.rows else 0.0
        return max(rows / self.capacity, kv)


@dataclass
class _Replica:
    report: LoadReport | None = None
    heard: float = math.inf  # when the report came
    sent_then: int = 0  # rows of our own in flight when the report came
    in_flight: dict[str, list[int]] = field(default_factory=dict)  # rows, by request

    @property
    def sent(self) -> int:
        return sum(map(sum, self.in_flight.values()))


class Loads(Generic[ReplicaKey]):
    """What one router knows of all replicas of a model."""

    def __init__(self, capacity: int) -> None:
        """
        Args:
            capacity: rows of a replica that has not reported yet.
        """
        self._capacity = capacity
        self._replicas: dict[ReplicaKey, _Replica] = {}
        self._intents: dict[Hashable, tuple[ReplicaKey, int, float]] = {}
        self._ended_early: dict[tuple[ReplicaKey, str], float] = {}

    def retain(self, replicas: Iterable[ReplicaKey]) -> None:
        """Forgets all others, and knows these."""
        self._replicas = {key: self._replicas.get(key, _Replica()) for key in replicas}

    def report(self, replica: ReplicaKey, report: LoadReport, now: float) -> None:
        """Takes the latest report; the same one again changes nothing.

        Args:
            now: seconds on any clock that does not go back.
        """
        known = self._replicas.setdefault(replica, _Replica())
        if known.report is None or known.report.serial != report.serial:
            known.report, known.heard = report, now
            known.sent_then = known.sent + self._intended(replica, now)

    def intend(self, request: Hashable, replica: ReplicaKey, rows: int, now: float) -> None:
        """A request is about to be sent; it counts until ``routed``, for two seconds at most.

        Args:
            request: whatever tells it from others; a second choice replaces the first.
        """
        fresh = {k: i for k, i in self._intents.items() if now - i[2] < _INTENT_SECONDS}
        self._intents = fresh | {request: (replica, rows, now)}

    def routed(self, request: Hashable, replica: ReplicaKey, request_id: str, rows: int) -> None:
        """A replica has taken a request, and may even be done with it."""
        self._intents.pop(request, None)
        if self._ended_early.pop((replica, request_id), None) is not None:
            return
        known = self._replicas.setdefault(replica, _Replica())
        known.in_flight.setdefault(request_id, []).append(rows)

    def completed(self, replica: ReplicaKey, request_id: str, now: float) -> None:
        """A request has ended.

        Serve may say so before it says that the replica has taken it: a refusal is short. It also
        says so of requests that the replica never took.
        """
        known = self._replicas.get(replica)
        if known is None or request_id not in known.in_flight:
            early = self._ended_early.items()
            fresh = {key: then for key, then in early if now - then < _INTENT_SECONDS}
            self._ended_early = fresh | {(replica, request_id): now}
            return
        rows = known.in_flight[request_id]
        rows.pop(0)
        if not rows:
            del known.in_flight[request_id]

    def load(self, replica: ReplicaKey, now: float) -> Load:
        """The report, corrected by what was sent and has ended since."""
        known = self._replicas.get(replica, _Replica())
        sent = known.sent + self._intended(replica, now)
        if known.report is None:
            return Load(sent, self._capacity, 0.0)
        rows = max(sent, known.report.rows + sent - known.sent_then)
        kv = known.report.kv_share * rows / known.report.rows if known.report.rows else 0.0
        latest = max(each.heard for each in self._replicas.values() if each.report is not None)
        doubtful = not known.report.lives or latest - known.heard > _SILENT_SECONDS
        return Load(rows, known.report.capacity, kv, doubtful)

    def _intended(self, replica: ReplicaKey, now: float) -> int:
        return sum(
            rows
            for key, rows, since in self._intents.values()
            if key == replica and now - since < _INTENT_SECONDS
        )


def rank(loads: Mapping[str, Load], demand: Demand, request_id: str) -> list[str]:
    """Replicas by id, the best for this request first.

    Args:
        loads: of each.
        request_id: draws between equals, so that several routers do not all take the first.
    """
    pressures = {replica: load.pressure(demand.rows) for replica, load in loads.items()}

    def order(replica: str) -> tuple[bool, float, bytes]:
        return loads[replica].doubtful, pressures[replica], _draw(request_id.encode(), replica)

    ranked = sorted(loads, key=order)
    if demand.prefix is None or not ranked:
        return ranked
    prefix = demand.prefix
    home = max(ranked, key=lambda replica: _draw(prefix, replica))
    if loads[home].doubtful:
        return ranked
    excess = (pressures[home] - pressures[ranked[0]]) * loads[home].capacity
    if excess <= demand.prefix_rows / REQUEST_STEPS:
        ranked.remove(home)
        ranked.insert(0, home)
    return ranked


def _draw(key: bytes, replica: str) -> bytes:
    return blake2b(key + b"/" + replica.encode(), digest_size=8).digest()
