"""What Serve's proxy does to a request before it looks at it, and before a front end sees it."""

from __future__ import annotations

import re

from ray.serve._private.constants import SERVE_MULTIPLEXED_MODEL_ID, SERVE_SESSION_ID
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
CALLBACK = "deployments.front_end.proxy:middlewares"
SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_REQUEST_ID = b"x-request-id"
# By these a client would steer Serve's own router; this service's has other reasons.
_SERVES_OWN = frozenset(
    name.lower().replace("-", "_").encode()
    for name in (SERVE_MULTIPLEXED_MODEL_ID, SERVE_SESSION_ID)
)


class UsableHeaders:
    """Takes away headers that would garble a log, steer Serve's router or make the proxy fail.

    The proxy decodes some headers as UTF-8 and answers 500 where they are none. It gives an
    ``x-request-id`` to a request that has none, and returns it with the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope = {**scope, "headers": usable(scope["headers"])}
        await self._app(scope, receive, send)


def usable(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that go on: of several request ids, or one that is not sane, none."""
    ids = [value for name, value in headers if name == _REQUEST_ID]
    taken = set(_SERVES_OWN)
    if len(ids) != 1 or not SANE_REQUEST_ID.fullmatch(ids[0].decode("latin-1")):
        taken.add(_REQUEST_ID.replace(b"-", b"_"))
    return [
        (name, value)
        for name, value in headers
        if name.isascii() and name.lower().replace(b"-", b"_") not in taken
    ]


def middlewares() -> list[Middleware]:
    """For ``CALLBACK``, which ``VARIABLE`` names to Serve's proxies: outermost of all they have."""
    return [Middleware(UsableHeaders)]
