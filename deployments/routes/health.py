"""``/live`` and ``/ready``: whether to restart this front end, and whether to use it."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request

from deployments.calls.health import answers
from deployments.front_end.errors import ApiError
from deployments.guards.runtime import Guards
from deployments.models.catalog import Catalog


def router(catalog: Catalog) -> APIRouter:
    """The endpoints over one catalog."""
    routes = APIRouter(tags=["health"])

    @routes.head("/live", include_in_schema=False)
    @routes.get("/live")
    async def live() -> dict[str, str]:
        """Answers as long as this process does, whatever the engines do."""
        return {"status": "live"}

    @routes.head("/ready", include_in_schema=False)
    @routes.get("/ready")
    async def ready(request: Request) -> dict[str, str]:
        """200 when every model has an engine and a vocoder that answer, otherwise 503; also 503
        when the service is stopping. A model that may have no replicas at times is not asked: that
        would wake it.

        ``keys`` is ``stale`` while the keys file cannot be used and its last state holds.
        """
        guards: Guards = request.app.state.guards
        guards.drain.require_open(catalog.service.retry_after_seconds)
        awake = [model for model in catalog if not model.card.sleeps]
        healthy = await asyncio.gather(*(answers(model.engines) for model in awake))
        waiting = [m.card.id for m, ok in zip(awake, healthy, strict=True) if not ok]
        if waiting:
            raise ApiError(
                503,
                f"not ready: {', '.join(waiting)}",
                code="engine_unavailable",
                retry_after=catalog.service.retry_after_seconds,
            )
        stale = guards.keys is not None and guards.keys.problem is not None
        return {"status": "ready", **({"keys": "stale"} if stale else {})}

    return routes
