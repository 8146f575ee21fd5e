"""WebSockets to where there is none: told as over HTTP."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.paths import path_of
from deployments.guards.refusal import refuse


def install(app: FastAPI) -> None:
    """Has the handshake answered with 404; Starlette would say 403 and nothing more."""
    otherwise = app.router.default

    async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await otherwise(scope, receive, send)
        error = ApiError(404, f"no WebSocket at {path_of(scope)}", code="unknown_url")
        await refuse(scope, receive, send, error)

    app.router.default = nowhere
