"""Asking for room again in the middle of a work of several requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deployments.front_end.errors import ApiError

_ATTEMPTS = 10
Begun = TypeVar("Begun")


async def patiently(begin: Callable[[], Awaitable[Begun]]) -> Begun:
    """What ``begin`` returns; where it finds no room, it is called again after as long as it says.

    The first request of a work should not wait so: its client can still be told with a status.

    Raises:
        ApiError: of ``begin``: any but 429, or 429 again and again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return await begin()
        except ApiError as error:
            if error.status != 429 or error.retry_after is None:
                raise
            await asyncio.sleep(error.retry_after)
    return await begin()
