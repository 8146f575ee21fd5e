"""Which requests are guarded."""

from __future__ import annotations

from starlette.types import Scope

HEALTH_PATHS = frozenset({"/live", "/ready"})
# Whatever else there is, or will be, needs a key.
_OPEN_PATHS = HEALTH_PATHS | {"/", "/docs", "/openapi.json"}


def path_of(scope: Scope) -> str:
    """The path of a request as the routes know it."""
    root: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    return path.removeprefix(root) if root else path


def guarded(scope: Scope) -> bool:
    """Whether a request needs a key, counts against limits, and stands in the audit log."""
    return scope["type"] in ("http", "websocket") and path_of(scope) not in _OPEN_PATHS
