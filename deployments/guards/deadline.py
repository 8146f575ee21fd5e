"""``x-request-timeout``: how long a client is willing to wait."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from deployments.guards.refusal import refuse, refuse_repeated

HEADER = "x-request-timeout"
# Serve's own, by which a client would make it ignore that the client has left, or end the request
# without any of what follows here.
_SERVES_OWN = ("x-request-disconnect-disabled", "x-request-timeout-seconds")
_LONGEST_SECONDS = 86_400.0
_NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class DeadlinePassed(Exception):
    """Breaks off a stream, so that its client sees that it is not whole."""


class Deadline:
    """Ends the work of a request whose client waits no longer.

    Before the first byte the client gets 408. Later a stream of events ends with what its route has
    left in ``request.state.at_deadline`` makes of the error; any other breaks off. Whatever ends a
    request, what its route has left in ``request.state.at_end``, an ``ExitStack``, is called.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        try:
            seconds = _seconds(scope)
        except ApiError as error:
            return await refuse(scope, receive, send, error)
        with ExitStack() as at_end:
            scope["state"]["at_end"] = at_end
            if seconds is None:
                await self._app(scope, receive, send)
            else:
                await self._within(seconds, scope, receive, send)

    async def _within(self, seconds: float, scope: Scope, receive: Receive, send: Send) -> None:
        audit: AuditRecord = scope["state"]["audit"]
        started = whole = False

        async def watched(message: Message) -> None:
            nonlocal started, whole
            started = True
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                await self._app(scope, receive, watched)
        except Exception:  # the cancelled work may end by any
            if not timer.expired():
                raise
            if whole:
                return
            audit.end = "deadline"
            error = ApiError(408, f"{HEADER}: {seconds:g} s have passed", code="deadline")
            last_event = scope["state"].get("at_deadline")
            if not started:
                await refuse(scope, receive, send, error)
            elif last_event is None:
                raise DeadlinePassed(error.message) from None
            else:
                await send({"type": "http.response.body", "body": last_event(error)})


def _seconds(scope: Scope) -> float | None:
    """
    Raises:
        ApiError: 400, a header that cannot be honoured.
    """
    headers = Headers(scope=scope)
    for name in _SERVES_OWN:
        if name in headers:
            raise ApiError(400, f"{name}: is not supported", param=name)
    refuse_repeated(headers, HEADER)
    given = headers.get(HEADER)
    if given is None:
        return None
    if scope["type"] == "websocket":
        raise ApiError(400, f"{HEADER}: does not go with a WebSocket", param=HEADER)
    seconds = float(given) if _NUMBER.fullmatch(given) else 0.0
    if seconds <= 0:
        raise ApiError(400, f"{HEADER}: must be a number of seconds above 0", param=HEADER)
    return min(seconds, _LONGEST_SECONDS)
