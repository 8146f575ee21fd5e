"""How a request to an engine replica begins, whatever is asked of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from deployments.calls import dead_replicas
from deployments.calls.errors import FAILURES, busy, failure, refusal, unavailable
from deployments.calls.messages import Accepted, Dead, Queued, Refused
from deployments.guards.audit import AuditRecord


async def begin(
    send: Callable[[], Any], accept_timeout: float, retry_after: int, audit: AuditRecord
) -> tuple[Any, Accepted, float, Any]:
    """Sends a request and waits for its first result, so that a refusal has a status.

    If it comes to a replica whose engine is dead it is sent once more, to another one if there is
    one: Serve needs some seconds to miss the dead.

    Args:
        send: sends it; returns the events of a replica, as ``ReplicaEvents``.
        accept_timeout: seconds a replica has to accept, or to put it into its queue, which says
            for how long; the first result may take longer.
        retry_after: seconds, for a client that is refused for lack of room.
        audit: learns of the acceptance.

    Returns:
        The replica's events; the first of them, the seconds it took to come, and the one behind
        it, which are no longer among the events.

    Raises:
        ApiError: refused, failed before any result, or no replica answers.
    """
    began = time.monotonic()
    events = send()
    try:
        accepted = await _first(events, accept_timeout)
        if isinstance(accepted, Dead):
            dead_replicas.note(accepted.replica)
            events = send()
            accepted = await _first(events, accept_timeout)
        accept = time.monotonic() - began
        if isinstance(accepted, Dead):
            raise unavailable(retry_after)
        if isinstance(accepted, Refused):
            raise refusal(accepted, retry_after)
        audit.accepted(accepted.seed)
        first = await anext(events)
        if isinstance(first, Refused):
            raise refusal(first, retry_after)
    except TimeoutError:
        events.cancel()
        raise (busy if events.replicas_answer else unavailable)(retry_after) from None
    except asyncio.CancelledError:  # Serve ends it only if the client has left
        events.cancel()
        raise
    except FAILURES as error:
        raise failure(error, retry_after) from error
    return events, accepted, accept, first


async def _first(events: Any, timeout: float) -> Any:
    """What a replica says first, its queue left aside."""
    async with asyncio.timeout(timeout):
        event = await anext(events)
    if isinstance(event, Queued):
        async with asyncio.timeout(event.seconds + timeout):
            event = await anext(events)
    return event
