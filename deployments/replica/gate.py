"""The queue of a replica as its requests meet it: they hold a ticket, and wait for its rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from cfg_pairing.admission import AdmissionQueue, Full, Priority, Ticket
from deployments.calls.messages import Queued, Refused

_Event = TypeVar("_Event")
_NEW_PACE_SHARE = 0.2  # of the last measurement in the mean


@dataclass(eq=False)
class Visit:
    """A request that is here.

    Attributes:
        audio_seconds: it was expected to make.
        made: seconds of audio it has made.
    """

    audio_seconds: float
    made: float = 0.0

    @property
    def owed(self) -> float:
        """Seconds of audio that are still to be made."""
        return max(0.0, self.audio_seconds - self.made)


@dataclass(eq=False)
class Gate:
    """Lets requests in as their rows become free. All methods belong to one event loop.

    Attributes:
        queue: only to be asked.
        visits: requests that are here.
        audio_seconds: made by all requests so far.
    """

    queue: AdmissionQueue
    visits: set[Visit] = field(default_factory=set)
    audio_seconds: float = 0.0
    _waiting: dict[Ticket, asyncio.Future[None]] = field(default_factory=dict)

    @property
    def audio_owed(self) -> float:
        """Seconds of audio that all who are here are still to get."""
        return sum(visit.owed for visit in self.visits)

    async def pass_through(
        self,
        events: AsyncGenerator[_Event, None],
        priority: Priority,
        rows: int,
        visit: Visit,
    ) -> AsyncGenerator[_Event | Queued | Refused, None]:
        """``events``, which begin when there are rows for them, and before that ``Queued`` if
        there are none yet; or ``Refused``.

        Closing it gives the place back, in the queue or in the engine.
        """
        ticket = self.queue.arrive(priority, rows, time.monotonic())
        if isinstance(ticket, Full):
            await events.aclose()
            why = {
                "wait": f"the expected wait is longer than class {priority} allows",
                "queue": "as many as may (max_waiting)",
            }[ticket.reason]
            yield self._refusal(why, ticket.retry_after)
            return
        self.visits.add(visit)
        try:
            if ticket.admitted is None:
                # Before anybody is told: a place that becomes free meanwhile must not be missed.
                place = self._waiting[ticket] = asyncio.get_running_loop().create_future()
                yield Queued(ticket.give_up - ticket.arrived)
                if not await _admitted(ticket, place):
                    wait = self.queue.expected_wait(priority, rows, time.monotonic())
                    yield self._refusal(f"it waited longer than class {priority} allows", wait)
                    return
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._leave(ticket)
            self.visits.discard(visit)

    def made(self, visit: Visit, seconds: float) -> None:
        """Counts audio that a request has made."""
        visit.made += seconds
        self.audio_seconds += seconds

    def _leave(self, ticket: Ticket) -> None:
        self._waiting.pop(ticket, None)
        for admitted in self.queue.leave(ticket, time.monotonic()):
            waiting = self._waiting.pop(admitted)
            if not waiting.done():
                waiting.set_result(None)

    def _refusal(self, why: str, retry_after: float) -> Refused:
        queue = self.queue
        here = f"{queue.running} requests are being served and {queue.waiting()} wait"
        return Refused(429, f"{here}: {why}", retry_after=retry_after)


async def _admitted(ticket: Ticket, place: asyncio.Future[None]) -> bool:
    """Whether it has its rows before its patience ends."""
    await asyncio.wait({place}, timeout=max(0.0, ticket.give_up - time.monotonic()))
    return ticket.admitted is not None


class Pace:
    """How fast a replica speaks, from what it has made between questions."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._asked: tuple[float, float] | None = None  # when, and audio made until then
        self._row_rate = 0.0  # seconds of audio per second and row

    def audio_rate(self, now: float) -> float:
        """Seconds of audio per second that all rows would make at the pace of the last ones;
        0 before there was any.

        Args:
            now: seconds, later than the last time.
        """
        made, rows = self._gate.audio_seconds, self._gate.queue.running_rows
        if self._asked is not None and rows and made > self._asked[1]:
            rate = (made - self._asked[1]) / (now - self._asked[0]) / rows
            self._row_rate += _NEW_PACE_SHARE * (rate - self._row_rate) if self._row_rate else rate
        self._asked = (now, made)
        return self._row_rate * self._gate.queue.rows
