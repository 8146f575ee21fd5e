"""``/docs``: ``/openapi.json`` for people."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from deployments.front_end.openapi_page import render
from deployments.routes.page import content_security_policy


def router() -> APIRouter:
    """The document, made of the description of the application that it is asked of."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/docs")
    async def docs(request: Request) -> HTMLResponse:
        """Every endpoint, field and answer."""
        document = render(request.app.openapi())
        policy = content_security_policy(document)
        return HTMLResponse(document, headers={"content-security-policy": policy})

    return routes
