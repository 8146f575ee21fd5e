"""What the stand-ins for engine replicas have in common, and the shape of all errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, TypeVar

import httpx
from starlette.testclient import WebSocketDenialResponse

Event = TypeVar("Event")


class Events(Generic[Event]):
    """``ReplicaEvents`` of a script.

    Attributes:
        cancelled: whether its request was.
    """

    replicas_answer = False

    def __init__(self, events: Sequence[Event | Exception]) -> None:
        self._events = iter(events)
        self.cancelled = False

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = None if self.cancelled else next(self._events, None)
        if event is None:
            raise StopAsyncIteration
        if isinstance(event, Exception):
            raise event
        return event

    def cancel(self) -> None:
        self.cancelled = True


def error_of(response: httpx.Response | WebSocketDenialResponse) -> dict[str, Any]:
    """Its error, after checks of the shape that all have."""
    body = response.json()
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert error["message"]
    if error["param"] is not None:
        assert error["message"].startswith(error["param"])
    return error
