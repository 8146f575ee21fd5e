"""Errors as OpenAI's clients expect them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from deployments.validation import first_field

_FORM = "multipart/form-data"
_TYPES = {401: "authentication_error", 429: "rate_limit_exceeded", 503: "unavailable"}


class ApiError(Exception):
    """An answer other than success.

    Attributes:
        status: HTTP status.
        param: the field at fault, as the client wrote it.
        code: a stable word for programs.
        retry_after: seconds after which another try may be worth it; None: that is not known.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        return error_body(self.status, self.message, param=self.param, code=self.code)


def refuse_fault(fault: tuple[str, str] | None) -> None:
    """
    Args:
        fault: the way to what is wrong, as ``audio.format``, and what is wrong with it.

    Raises:
        ApiError: 400, there is a fault.
    """
    if fault is not None:
        way, message = fault
        raise ApiError(400, f"{way}: {message}", param=re.split(r"[.\[]", way)[0])


def error_body(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """The JSON of an error; all four keys are always there."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_response(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(
        error_body(status, message, param=param, code=code), status, headers=headers
    )


def install(app: FastAPI) -> None:
    """Makes every error of ``app`` have OpenAI's shape, those of the frameworks included."""

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> JSONResponse:
        request.state.audit.denied(error)
        return error_response(
            error.status,
            error.message,
            param=error.param,
            code=error.code,
            headers=error.headers,
        )

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        param, message = _describe_body(error)
        if isinstance(error.body, FormData) and not request.headers.get(
            "content-type", ""
        ).startswith(_FORM):
            message += f"; send a form, as content-type {_FORM}"
        return error_response(400, message, param=param)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        message, code = str(error.detail), None
        if error.status_code == 404:
            message, code = f"no route {request.method} {request.url.path}", "unknown_url"
        elif error.status_code == 405:
            message = f"{request.url.path} does not take {request.method}"
            headers = {"Allow": ", ".join(sorted(_methods(request)))}
            return error_response(405, message, headers=headers)
        elif error.status_code == 400 and not message.startswith("the body "):
            message = f"the form cannot be read: {message}"  # Starlette's words follow
        return error_response(error.status_code, message, code=code, headers=error.headers)


def _methods(request: Request) -> set[str]:
    """Of all routes of a path; Starlette names those of the first one."""
    return {
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }


def _describe_body(error: RequestValidationError) -> tuple[str | None, str]:
    errors = error.errors()
    # FastAPI's locations begin with where the value was; a body that is no JSON object
    # has nothing after it.
    fields = [{**e, "loc": e["loc"][1:]} for e in errors]
    if not fields[0]["loc"]:
        return None, "the body must be a JSON object, sent as content-type application/json"
    return first_field(fields, error.body)
