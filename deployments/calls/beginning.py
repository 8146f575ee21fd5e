"""How a request to an engine replica begins, whatever is asked of it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from deployments.calls.errors import FAILURES, busy, failure, refusal, unavailable
from deployments.calls.messages import Accepted, Queued, Refused
from deployments.guards.audit import AuditRecord


async def begin(
    events: Any, accept_timeout: float, retry_after: int, audit: AuditRecord
) -> tuple[Accepted, float, Any]:
    """Waits for the first result, so that a refusal has a status.

    Args:
        events: of a replica, as ``ReplicaEvents``.
        accept_timeout: seconds a replica has to accept, or to put it into its queue, which says
            for how long; the first result may take longer.
        retry_after: seconds, for a client that is refused for lack of room.
        audit: learns of the acceptance.

    Returns:
        The replica's first event, the seconds it took to come, and the event behind it.

    Raises:
        ApiError: refused, failed before any result, or no replica answers.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(accept_timeout):
            accepted = await anext(events)
        if isinstance(accepted, Queued):
            async with asyncio.timeout(accepted.seconds + accept_timeout):
                accepted = await anext(events)
        accept = time.monotonic() - began
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
    return accepted, accept, first
