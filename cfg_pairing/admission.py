"""Who gets a place in a replica next, and who need not wait for one: its queue. Pure.

A *ticket* is a request and the rows it needs: one, or two if it is guided. Tickets of one
class are admitted in order of arrival. Between classes the rows that become free are shared
by weight (start-time fair queueing), so a class is never starved, whatever the others send;
a share that a class does not use goes to those that wait. A ticket that needs two rows is not
overtaken while only one is free.

Nobody waits who would wait too long: a ticket is refused at once if the wait that is expected
for it is longer than its class allows, and is told when to come back. Expectations are wrong
at times, so a ticket that has waited twice as long as was allowed is given up.

Times are seconds on any clock that does not go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Priority = Literal["realtime", "standard", "batch"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
"""The best first."""

_PATIENCE = 2.0
_LEAST_PATIENCE_SECONDS = 1.0
_FIRST_HOLD_SECONDS = 5.0  # of a place, before any was given back
_NEW_HOLD_SHARE = 0.1  # of the last ticket in the mean


@dataclass(frozen=True)
class ClassPolicy:
    """What a class of requests gets.

    Attributes:
        weight: its share of the rows that become free is this over the sum of the weights of
            all classes that wait.
        max_wait: seconds that a ticket of it may be expected to wait; 0: it does not wait.
    """

    weight: float
    max_wait: float


@dataclass(frozen=True)
class Full:
    """A ticket was refused.

    Attributes:
        expected_wait: seconds, had it been queued.
        retry_after: seconds until it could be expected to be queued.
        reason: its own wait would be too long, or too many wait already.
    """

    expected_wait: float
    retry_after: float
    reason: Literal["wait", "queue"] = "wait"


@dataclass(eq=False)
class Ticket:
    """A request that waits for its rows, has them, or has left.

    Attributes:
        give_up: when it has waited too long.
        admitted: when it got its rows; None while it waits.
    """

    priority: Priority
    rows: int
    arrived: float
    give_up: float
    admitted: float | None = None
    left: bool = False


class AdmissionQueue:
    """The rows of one replica, those who hold them, and those who wait for them."""

    def __init__(
        self,
        rows: int,
        requests: int,
        classes: Mapping[Priority, ClassPolicy],
        max_waiting: int,
    ) -> None:
        """
        Args:
            rows: that can be held together.
            requests: that can hold rows together.
            classes: a policy for each.
            max_waiting: tickets of all classes together that may wait, whatever is expected.

        Raises:
            ValueError: there is no row or request, or a weight is not positive.
        """
        if rows < 1 or requests < 1:
            raise ValueError(f"a queue needs a row and a request, not {rows} and {requests}")
        if any(classes[priority].weight <= 0 for priority in PRIORITIES):
            raise ValueError("the weight of a class must be positive")
        self._rows = rows
        self._requests = requests
        self._classes = dict(classes)
        self._max_waiting = max_waiting
        self._waiting: dict[Priority, deque[Ticket]] = {p: deque() for p in PRIORITIES}
        # Rows that a class has had, by weight. One that was away goes on from the clock, so it
        # cannot save up.
        self._served: dict[Priority, float] = dict.fromkeys(PRIORITIES, 0.0)
        self._clock = 0.0
        self._running = 0
        self._running_rows = 0
        self._admitted_at = 0.0  # sum over those who hold rows
        self._hold = _FIRST_HOLD_SECONDS

    @property
    def running(self) -> int:
        """Tickets that hold rows."""
        return self._running

    @property
    def running_rows(self) -> int:
        """Rows that are held."""
        return self._running_rows

    @property
    def rows(self) -> int:
        """Rows there are."""
        return self._rows

    def waiting(self, priority: Priority | None = None) -> int:
        """Tickets that wait, of a class or of all."""
        return sum(len(self._waiting[p]) for p in _classes(priority))

    def waiting_rows(self, priority: Priority | None = None) -> int:
        """Rows they wait for."""
        return sum(ticket.rows for p in _classes(priority) for ticket in self._waiting[p])

    def wanted_rows(self) -> int:
        """Rows that are held or waited for."""
        return self._running_rows + self.waiting_rows()

    def oldest(self, now: float) -> float:
        """Seconds that the ticket has waited which has waited longest; 0 if none waits."""
        heads = [queue[0].arrived for queue in self._waiting.values() if queue]
        return now - min(heads, default=now)

    def arrive(self, priority: Priority, rows: int, now: float) -> Ticket | Full:
        """A new ticket, which has its rows already or waits, or why there is none.

        Args:
            rows: more than there are count as all.
        """
        rows = min(rows, self._rows)
        policy = self._classes[priority]
        expected = self.expected_wait(priority, rows, now)
        too_many = expected > 0 and self.waiting() >= self._max_waiting
        if expected > policy.max_wait or too_many:
            later = self._place_seconds(now) if too_many else expected - policy.max_wait
            return Full(expected, max(0.0, later), "queue" if too_many else "wait")
        patience = max(_LEAST_PATIENCE_SECONDS, _PATIENCE * policy.max_wait)
        ticket = Ticket(priority, rows, now, now + patience)
        if not self._waiting[priority]:
            self._served[priority] = max(self._served[priority], self._clock)
        self._waiting[priority].append(ticket)
        self._admit(now)
        return ticket

    def leave(self, ticket: Ticket, now: float) -> list[Ticket]:
        """Takes a ticket out, whether it waits or holds rows, and admits others.

        Returns:
            Those that have their rows now, in order.

        Raises:
            ValueError: it has left before.
        """
        if ticket.left:
            raise ValueError("the ticket has left before")
        ticket.left = True
        if ticket.admitted is None:
            self._waiting[ticket.priority].remove(ticket)
        else:
            self._running -= 1
            self._running_rows -= ticket.rows
            self._admitted_at -= ticket.admitted
            self._hold += _NEW_HOLD_SHARE * (now - ticket.admitted - self._hold)
        return self._admit(now)

    def expected_wait(self, priority: Priority, rows: int, now: float) -> float:
        """Seconds until a ticket that came now would have its rows."""
        own = self.waiting_rows(priority) + rows
        weight = self._classes[priority].weight
        ahead = float(own)
        for other in PRIORITIES:
            if other != priority:
                share = own * self._classes[other].weight / weight
                ahead += min(float(self.waiting_rows(other)), share)
        ahead -= self._free_rows()
        return max(0.0, ahead) * self._row_seconds(now)

    def _place_seconds(self, now: float) -> float:
        """Seconds until one of those who wait is admitted."""
        return self._row_seconds(now) * self.waiting_rows() / max(1, self.waiting())

    def _free_rows(self) -> int:
        return self._rows - self._running_rows if self._running < self._requests else 0

    def _row_seconds(self, now: float) -> float:
        """Seconds from one row that becomes free to the next, while all places are taken."""
        if not self._running:
            return self._hold / self._rows
        age = now - self._admitted_at / self._running
        return max(self._hold, age) / self._running_rows

    def _admit(self, now: float) -> list[Ticket]:
        admitted = []
        while (ticket := self._next()) is not None and ticket.rows <= self._free_rows():
            priority = ticket.priority
            self._waiting[priority].popleft()
            self._clock = self._served[priority]
            self._served[priority] += ticket.rows / self._classes[priority].weight
            ticket.admitted = now
            self._running += 1
            self._running_rows += ticket.rows
            self._admitted_at += now
            admitted.append(ticket)
        return admitted

    def _next(self) -> Ticket | None:
        heads = [p for p in PRIORITIES if self._waiting[p]]
        if not heads:
            return None
        return self._waiting[min(heads, key=self._served.__getitem__)][0]


def _classes(priority: Priority | None) -> tuple[Priority, ...]:
    return PRIORITIES if priority is None else (priority,)
