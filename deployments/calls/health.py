"""Whether replicas of a model are there, asked when it matters."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

TIMEOUT_SECONDS = 2.0


class Checked(Protocol):
    """The replicas of one model, as far as their health goes."""

    def check_health(self) -> Any:
        """An awaitable with ``cancel()``; raises unless a replica is healthy."""


async def answers(engines: Checked) -> bool:
    """Whether one says within ``TIMEOUT_SECONDS`` that it is healthy."""
    response = engines.check_health()
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await response
    except TimeoutError:
        response.cancel()  # it would wait for a replica, and another comes every second
        return False
    except Exception:  # whatever keeps it from answering, the answer is the same
        return False
    return True
