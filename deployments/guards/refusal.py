"""Errors that are sent before a route sees the request, over HTTP or to a WebSocket."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from deployments.front_end.errors import ApiError, error_response


def refuse_repeated(headers: Headers, name: str) -> None:
    """
    Raises:
        ApiError: 400, a header comes more than once, so that one of them would be ignored.
    """
    if len(headers.getlist(name)) > 1:
        raise ApiError(400, f"{name}: comes more than once", param=name)


async def refuse(scope: Scope, receive: Receive, send: Send, error: ApiError) -> None:
    """Answers a request, or the handshake of a WebSocket, with an error."""
    scope["state"]["audit"].denied(error)
    response = error_response(
        error.status, error.message, param=error.param, code=error.code, headers=error.headers
    )
    if scope["type"] == "http":
        return await response(scope, receive, send)
    if "websocket.http.response" not in scope.get("extensions", {}):
        return await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})

    async def as_handshake(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await response({**scope, "type": "http"}, receive, as_handshake)
