"""What browsers are told: what a page may load, and what other sites may read."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.guards.paths import path_of

# Of answers that are no page; those that are have their own.
_API_POLICY = "default-src 'none'; frame-ancestors 'none'"

_EXPOSED = [
    "retry-after",
    "server-timing",
    "x-finish-reason",
    "x-request-id",
    "x-sample-rate",
    "x-seed",
]


def cors_options(origins: list[str]) -> dict[str, Any]:
    """The arguments of Starlette's ``CORSMiddleware``. Keys are sent by scripts, never by
    the browser itself, so there are no credentials to allow."""
    return {
        "allow_origins": origins,
        "allow_methods": ["GET", "POST", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": _EXPOSED,
    }


class SecurityHeaders:
    """Adds to every answer what keeps browsers from misusing it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = path_of(scope)

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers.setdefault("content-security-policy", _API_POLICY)
                if path.startswith("/v1/"):
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, protected)
