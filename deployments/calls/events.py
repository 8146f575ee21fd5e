"""The events of one request to an engine replica, and whether replicas answer at all."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from typing import Any


class Pulse:
    """When the replicas of a model were last heard of, in whatever request."""

    def __init__(self) -> None:
        self._last = -math.inf

    def beat(self) -> None:
        """One of them has said something."""
        self._last = time.monotonic()

    def since(self, moment: float) -> bool:
        """Whether one has since then, by ``time.monotonic``."""
        return self._last >= moment


class ReplicaEvents:
    """Serve's stream of events, watched."""

    def __init__(self, events: Any, pulse: Pulse) -> None:
        """
        Args:
            events: an async iterator with ``cancel()``, just asked for.
            pulse: of the replicas that they come from.
        """
        self._events = events
        self._pulse = pulse
        self._asked = time.monotonic()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        self._pulse.beat()
        return event

    def cancel(self) -> None:
        """Ends the request."""
        self._events.cancel()

    @property
    def replicas_answer(self) -> bool:
        """Whether replicas have said something since this request was sent, to whomever.

        If it has no answer then, they are busy, and not missing.
        """
        return self._pulse.since(self._asked)
