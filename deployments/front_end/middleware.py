"""What happens to every HTTP request before a route sees it, whoever sends it."""

from __future__ import annotations

import asyncio
import uuid

from opentelemetry.sdk.trace import Span
from opentelemetry.trace import StatusCode
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments import tracing
from deployments.front_end.errors import error_response
from deployments.front_end.proxy import SANE_REQUEST_ID
from deployments.guards.audit import AuditRecord
from deployments.guards.paths import guarded, path_of
from deployments.metrics.requests import endpoint_of

# Bodies that may hold audio.
_UPLOADS = frozenset({"/v1/audio/transcriptions", "/v1/audio/voices", "/v1/chat/completions"})


class RequestId:
    """Sets ``request.state.request_id``: the client's, unless it could garble a log.

    Serve's proxy gives every request an ``x-request-id`` and returns it with the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
            sane = SANE_REQUEST_ID.fullmatch(given)
            scope.setdefault("state", {})["request_id"] = given if sane else uuid.uuid4().hex
        await self._app(scope, receive, send)


class UnexpectedErrors:
    """Answers 500 where a request fails without an answer.

    Starlette would do so too, but outside of everything that adds headers to answers. Whoever runs
    the application gets the error again, and logs it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if not started:
                await error_response(500, "internal error")(scope, receive, send)
            raise


class Traced:
    """Sets ``request.state.trace`` (see ``tracing``), and ends the request's span with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        span = _span(scope) if guarded(scope) else None
        scope["state"]["trace"] = tracing.trace_of(span)
        try:
            await self._app(scope, receive, send)
        finally:
            if span is not None:
                _end_span(span, scope["state"]["audit"])


def _span(scope: Scope) -> Span | None:
    name = f"{scope.get('method', 'WEBSOCKET')} {endpoint_of(path_of(scope))}"
    request_id = scope["state"]["request_id"]
    return tracing.root(name, Headers(scope=scope), request_id=request_id)


def _end_span(span: Span, record: AuditRecord) -> None:
    if record.queue_seconds is not None:
        accepted = record.arrived + record.queue_seconds
        tracing.record("queue", record.trace, record.arrived, accepted)
    for name in ("model", "status", "end", "finish_reason", "first_byte_seconds"):
        if (value := getattr(record, name)) is not None:
            span.set_attribute(name, value)
    if record.end == "failed":
        span.set_status(StatusCode.ERROR)
    span.end()


class BodyLimit:
    """Refuses a body that is too large, by its stated length or once too much has come."""

    def __init__(self, app: ASGIApp, max_bytes: int, max_upload_bytes: int) -> None:
        """
        Args:
            max_upload_bytes: where a body may hold audio.
        """
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        most = self._max_upload_bytes if path_of(scope) in _UPLOADS else self._max_bytes
        message = f"the body is larger than {most} bytes"
        stated = dict(scope["headers"]).get(b"content-length", b"")
        if stated.isdigit() and int(stated) > most:
            return await error_response(413, message)(scope, receive, send)
        received = 0

        async def limited() -> Message:
            nonlocal received
            part = await receive()
            received += len(part.get("body", b""))
            if received > most:
                raise HTTPException(413, message)
            return part

        await self._app(scope, limited, send)


class BodyTimeout:
    """Refuses a body that has not arrived in time, however slowly it drips."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        deadline = asyncio.get_running_loop().time() + self._seconds
        whole = False

        async def timed() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    part = await receive()
            except TimeoutError:
                message = f"the body has not arrived within {self._seconds:g} s"
                raise HTTPException(408, message) from None
            whole = not part.get("more_body", False)
            return part

        await self._app(scope, timed, send)
