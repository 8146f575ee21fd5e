"""The names by which a service that needs no key may be called: only this machine's own."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.exposure import is_loopback
from deployments.guards.paths import HEALTH_PATHS, path_of
from deployments.guards.refusal import refuse


class LocalNames:
    """Refuses what was sent to a name that is not loopback.

    Whoever owns a domain can let it point to this machine after a browser has loaded a page from
    it (DNS rebinding). The page and this service then have one origin for the browser, and only
    the name in the request tells that the page is foreign.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or path_of(scope) in HEALTH_PATHS:
            return await self._app(scope, receive, send)
        names = Headers(scope=scope).getlist("host")
        if [is_loopback(_host(name)) for name in names] == [True]:
            return await self._app(scope, receive, send)
        named = ", ".join(map(repr, names)) or "none"
        error = ApiError(
            403,
            f"Host: must be localhost or a loopback address, not {named}, as long as no API keys "
            "are configured",
            param="Host",
            code="wrong_host",
        )
        await refuse(scope, receive, send, error)


def _host(name: str) -> str:
    """A ``Host`` header without its port; empty if it is malformed."""
    try:
        return urlsplit(f"//{name}").hostname or ""
    except ValueError:
        return ""
