"""The queue of a replica as its requests meet it: they hold a ticket, and wait for its rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from cfg_pairing.admission import AdmissionQueue, Full, Priority, Ticket
from deployments.messages import Queued, Refused

_Event = TypeVar("_Event")


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
    """

    queue: AdmissionQueue
    visits: set[Visit] = field(default_factory=set)
    _waiting: dict[Ticket, asyncio.Future[None]] = field(default_factory=dict)

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
            yield self._refusal(ticket.retry_after)
            return
        self.visits.add(visit)
        try:
            if ticket.admitted is None:
                # Before anybody is told: a place that becomes free meanwhile must not be missed.
                self._waiting[ticket] = asyncio.get_running_loop().create_future()
                patience = ticket.give_up - ticket.arrived
                yield Queued(patience)
                if not await self._admitted(ticket):
                    yield self._refusal(self.queue.expected_wait(priority, rows, time.monotonic()))
                    return
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._leave(ticket)
            self.visits.discard(visit)

    async def _admitted(self, ticket: Ticket) -> bool:
        """Whether it has its rows before its patience ends."""
        try:
            async with asyncio.timeout(ticket.give_up - time.monotonic()):
                await self._waiting[ticket]
        except TimeoutError:
            pass
        return ticket.admitted is not None

    def _leave(self, ticket: Ticket) -> None:
        self._waiting.pop(ticket, None)
        for admitted in self.queue.leave(ticket, time.monotonic()):
            waiting = self._waiting.pop(admitted)
            if not waiting.done():
                waiting.set_result(None)

    def _refusal(self, retry_after: float) -> Refused:
        queue = self.queue
        return Refused(
            429,
            f"{queue.running} requests are being served, {queue.waiting()} wait, and no more fit",
            retry_after=retry_after,
        )
