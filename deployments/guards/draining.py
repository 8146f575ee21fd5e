"""The end of a front end: nobody comes in any more, and those who are inside may finish."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.paths import guarded
from deployments.guards.refusal import refuse


class Drain:
    """Whether a front end is to end, as ``request.state.drain``."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()

    def begin(self) -> None:
        """It is, from now on. Must be called in the event loop of those who wait for it."""
        self._begun.set()

    async def wait(self) -> None:
        """Returns when it is."""
        await self._begun.wait()

    def require_open(self, retry_after: int) -> None:
        """
        Args:
            retry_after: seconds, for those who come too late.

        Raises:
            ApiError: 503, it is to end.
        """
        if self._begun.is_set():
            raise ApiError(
                503,
                "the service is stopping and takes no new requests",
                code="draining",
                retry_after=retry_after,
            )


class Draining:
    """Refuses what comes after the end has begun; whether the process lives can still be asked."""

    def __init__(self, app: ASGIApp, drain: Drain, retry_after: int) -> None:
        self._app = app
        self._drain = drain
        self._retry_after = retry_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not guarded(scope):
            return await self._app(scope, receive, send)
        try:
            self._drain.require_open(self._retry_after)
        except ApiError as error:
            return await refuse(scope, receive, send, error)
        scope["state"]["drain"] = self._drain
        await self._app(scope, receive, send)
