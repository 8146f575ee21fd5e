"""What happens to every HTTP request before a route sees it."""

from __future__ import annotations

import re
import uuid

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.errors import error_response

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestId:
    """Sets ``request.state.request_id``: the client's, unless it could garble a log.

    Serve's proxy gives every request an ``x-request-id`` and returns it with the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
            sane = _SANE_REQUEST_ID.fullmatch(given)
            scope.setdefault("state", {})["request_id"] = given if sane else uuid.uuid4().hex
        await self._app(scope, receive, send)


class BodyLimit:
    """Refuses a body that is too large, by its stated length or once too much has come."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        stated = dict(scope["headers"]).get(b"content-length", b"")
        if stated.isdigit() and int(stated) > self._max_bytes:
            return await error_response(413, self._message)(scope, receive, send)
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413, self._message)
            return message

        await self._app(scope, limited, send)

    @property
    def _message(self) -> str:
        return f"the body is larger than {self._max_bytes} bytes"
