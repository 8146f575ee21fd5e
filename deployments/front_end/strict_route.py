"""Routes that ignore nothing of a request: no second key in JSON, no parameter of the address."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from deployments.front_end import strict_json
from deployments.front_end.errors import ApiError


def refuse_query(connection: HTTPConnection) -> None:
    """
    Raises:
        ApiError: 400, the address has parameters, which no route takes.
    """
    for name in connection.query_params:
        raise ApiError(400, f"{name}: query parameters are not accepted", param=name)


class _StrictRequest(Request):
    async def json(self) -> Any:
        """
        Raises:
            HTTPException: 400, the body cannot be used; FastAPI passes it on.
        """
        try:
            return strict_json.parse(await self.body())
        except strict_json.NotJson as error:
            encoding = self.headers.get("content-encoding")
            compressed = f"; its content-encoding {encoding} is not taken" if encoding else ""
            raise HTTPException(400, f"the body {error}{compressed}") from error


class StrictRoute(APIRoute):
    """For every router whose clients are programs."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            refuse_query(request)
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly
