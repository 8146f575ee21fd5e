"""``/v1/models``: what is served."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from deployments.front_end.strict_route import StrictRoute
from deployments.models.catalog import Catalog


def router(catalog: Catalog) -> APIRouter:
    """The endpoints over one catalog."""
    routes = APIRouter(prefix="/v1/models", tags=["models"], route_class=StrictRoute)

    @routes.head("", include_in_schema=False)
    @routes.get("")
    async def list_models() -> dict[str, Any]:
        """All models."""
        cards = [model.card.entry(catalog.created) for model in catalog]
        return {"object": "list", "data": cards}

    @routes.head("/{model_id:path}", include_in_schema=False)
    @routes.get("/{model_id:path}")
    async def get_model(model_id: str) -> dict[str, Any]:
        """One model."""
        return catalog.model(model_id).card.entry(catalog.created)

    return routes
