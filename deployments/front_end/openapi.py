"""What ``/openapi.json`` says of answers that are no plain JSON, and of errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from deployments.front_end.sse import MEDIA_TYPE

_AUDIO_TYPES = ("audio/mpeg", "audio/opus", "audio/aac", "audio/flac", "audio/wav", "audio/pcm")


class ErrorDetail(BaseModel):
    """What is wrong.

    Attributes:
        param: the field at fault.
        code: a stable word for programs.
    """

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request is refused."},
    "5XX": {"model": ErrorAnswer, "description": "The request failed, or no engine is there."},
}
"""For every router. Refusals of one kind differ between deployments, so that the status codes
are in docs/api.md and not listed here."""


def also(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """A successful answer: JSON, or what else there is where that is asked for."""
    # Of events nothing is said: a schema would be one of all of them in a row.
    content: dict[str, Any] = {media_type: {} for media_type in media_types}
    return {200: {"description": "The answer.", "content": {"application/json": {}, **content}}}


def audio() -> dict[int | str, dict[str, Any]]:
    """A successful answer: audio in one of the formats, or as events."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    content = {**dict.fromkeys(_AUDIO_TYPES, schema), MEDIA_TYPE: {}}
    return {200: {"description": "The audio.", "content": content}}


class DescribedApp(FastAPI):
    """An application whose description also says that forms have no other fields."""

    def openapi(self) -> dict[str, Any]:
        """The description, as ``/openapi.json`` gives it."""
        described = super().openapi()
        for name, schema in described["components"]["schemas"].items():
            if name.startswith("Body_"):  # FastAPI's name of a form
                schema["additionalProperties"] = False
        return described
