"""Limits of a client, and of a front end, checked before anything else is done."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from deployments.guards.keys import Caller
from deployments.guards.leases import Leases
from deployments.guards.limits import Kind
from deployments.guards.paths import guarded
from deployments.guards.refusal import refuse


class Admission:
    """Holds a lease for every request of a client with limits, until it ends, however it does."""

    def __init__(self, app: ASGIApp, leases: Leases) -> None:
        self._app = app
        self._leases = leases

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not guarded(scope):
            return await self._app(scope, receive, send)
        caller: Caller = scope["state"]["caller"]
        if not caller.limits.any:
            return await self._app(scope, receive, send)
        audit: AuditRecord = scope["state"]["audit"]
        kind: Kind = "websocket" if scope["type"] == "websocket" else "request"
        makes_audio = kind == "websocket" or scope["method"] == "POST"
        try:
            lease = await self._leases.acquire(
                caller, kind, makes_audio, lambda: audit.output_seconds
            )
        except ApiError as error:
            return await refuse(scope, receive, send, error)

        async def audio_left() -> None:
            await self._leases.require_audio(lease, scope["state"]["caller"].limits)

        scope["state"]["standing"].add(audio_left)
        try:
            await self._app(scope, receive, send)
        finally:
            self._leases.release(lease)


class Capacity:
    """Bounds what is open in one front end; the health of a full one can still be asked."""

    def __init__(
        self, app: ASGIApp, max_requests: int, max_websockets: int, retry_after: int
    ) -> None:
        self._app = app
        self._most = {"http": max_requests, "websocket": max_websockets}
        self._live = dict.fromkeys(self._most, 0)
        self._retry_after = retry_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not guarded(scope):
            return await self._app(scope, receive, send)
        kind: str = scope["type"]
        if self._live[kind] >= self._most[kind]:
            what = "requests are being answered" if kind == "http" else "WebSockets are open"
            error = ApiError(
                429,
                f"{self._most[kind]} {what}; no more are taken",
                code="overloaded",
                retry_after=self._retry_after,
            )
            return await refuse(scope, receive, send, error)
        self._live[kind] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._live[kind] -= 1
