"""Who may use the service: the API key of a request."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from deployments.guards.key_source import KeySource
from deployments.guards.keys import ANONYMOUS, Caller
from deployments.guards.paths import guarded
from deployments.guards.priority import HEADER, priority_of
from deployments.guards.refusal import refuse, refuse_repeated
from deployments.guards.settings import ClientLimits
from deployments.guards.standing import Standing

# How a script in a browser sends a key with a WebSocket, as OpenAI's clients do.
_KEY_PROTOCOL = "openai-insecure-api-key."


class Access:
    """Sets ``request.state.caller``, ``priority`` and ``standing``, or refuses.

    The key goes no further: it is taken out of what the routes see.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: KeySource | None,
        anonymous: ClientLimits,
        origins: Collection[str],
    ) -> None:
        """
        Args:
            keys: None: nobody needs one.
            anonymous: limits of those who come without a key where none is needed.
            origins: web sites whose scripts may use the service.
        """
        self._app = app
        self._keys = keys
        self._anonymous = Caller(ANONYMOUS, None, anonymous)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not guarded(scope):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        try:
            for name in ("Authorization", HEADER):
                refuse_repeated(headers, name)
            key = _key(headers, scope)
            caller = self._caller(headers, key)
            priority = priority_of(headers.get(HEADER), caller.limits.priority)
        except ApiError as error:
            return await refuse(scope, receive, send, error)
        audit: AuditRecord = scope["state"]["audit"]
        audit.client, audit.key_id, audit.priority = caller.client, caller.key_id, priority
        state = scope["state"]
        state["caller"], state["priority"], state["standing"] = caller, priority, Standing()

        async def known() -> None:
            state["caller"] = self._caller(headers, key)

        state["standing"].add(known)
        scope = {
            **scope,
            "headers": [(k, v) for k, v in scope["headers"] if k != b"authorization"],
        }
        if scope["type"] == "websocket":
            return await self._app(_without_key(scope), receive, _choosing(scope, send))
        await self._app(scope, receive, send)

    def _caller(self, headers: Headers, key: str | None) -> Caller:
        """
        Raises:
            ApiError: 401, no key or a wrong one; 403, from a script of another site.
        """
        if self._keys is None:
            if self._from_another_site(headers):
                given = ", ".join(headers.getlist("origin"))
                raise ApiError(
                    403,
                    f"Origin: {given!r:.200} is another site than this service; its "
                    "scripts may not use it; guards.cors_origins lists the sites whose scripts may",
                    param="Origin",
                    code="wrong_origin",
                )
            return self._anonymous
        caller = None if key is None else self._keys.find(key)
        if caller is not None:
            return caller
        message = (
            "an API key is needed, as the header Authorization: Bearer KEY"
            if key is None
            else "the API key is not valid"
        )
        error = ApiError(401, message, code="invalid_api_key")
        error.headers["WWW-Authenticate"] = "Bearer"
        raise error

    def _from_another_site(self, headers: Headers) -> bool:
        # Any site that somebody visits can send requests to a service on the same machine, and
        # only the answers are kept from it (over a WebSocket, not even those).
        if "*" in self._origins:
            return False
        foreign = set(headers.getlist("origin")) - self._origins
        return any(_netloc(origin) != headers.get("host") for origin in foreign)


def _netloc(origin: str) -> str | None:
    """Host and port of a site; None: it is no address at all."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _key(headers: Headers, scope: Scope) -> str | None:
    """
    Raises:
        ApiError: 400, there are several, so that it is not clear who calls.
    """
    scheme, _, value = headers.get("authorization", "").partition(" ")
    bearer = [value.strip()] if scheme.lower() == "bearer" and value.strip() else []
    offered: list[str] = scope.get("subprotocols", [])
    keys = bearer + [p.removeprefix(_KEY_PROTOCOL) for p in offered if p.startswith(_KEY_PROTOCOL)]
    if len(keys) > 1:
        raise ApiError(400, "Authorization: several API keys are given", param="Authorization")
    return keys[0] if keys else None


def _offered(scope: Scope) -> list[str]:
    return [p for p in scope.get("subprotocols", ()) if not p.startswith(_KEY_PROTOCOL)]


def _without_key(scope: Scope) -> Scope:
    headers = [(k, v) for k, v in scope["headers"] if k != b"sec-websocket-protocol"]
    return {**scope, "headers": headers, "subprotocols": _offered(scope)}


def _choosing(scope: Scope, send: Send) -> Send:
    """Accepts with the first protocol offered, where the route does not choose.

    A browser that has offered protocols gives up if none of them is chosen.
    """
    offered = _offered(scope)

    async def choosing(message: Message) -> None:
        if message["type"] == "websocket.accept" and not message.get("subprotocol") and offered:
            message = {**message, "subprotocol": offered[0]}
        await send(message)

    return choosing
