"""The fields of ``POST /v1/audio/transcriptions``, a multipart form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from fastapi import File, Form, UploadFile

from deployments.front_end.errors import ApiError
from deployments.front_end.forms import check_fields

Format = Literal["json", "text", "srt", "verbose_json", "vtt"]
_STREAMED: tuple[Format, ...] = ("json", "text")
_GRANULARITIES = "timestamp_granularities[]"
_REFUSED = {"maxLength": 0}  # for programs; people are told why
_FIELDS = frozenset(
    {
        *("file", "model", "language", "prompt", "response_format", "temperature", "stream"),
        *(_GRANULARITIES, "chunking_strategy"),
    }
)


class TranscriptionForm:
    """What may be asked; a dependency of the route. Fields are OpenAI's."""

    def __init__(
        self,
        file: Annotated[UploadFile, File()],
        model: Annotated[str, Form(min_length=1)],
        timestamp_granularities: Annotated[
            list[Literal["word", "segment"]], Form(alias=_GRANULARITIES, default_factory=list)
        ],
        language: Annotated[str, Form(json_schema_extra=_REFUSED)] = "",
        prompt: Annotated[str, Form(json_schema_extra=_REFUSED)] = "",
        response_format: Annotated[Format, Form()] = "json",
        temperature: Annotated[float, Form(ge=0, le=1, allow_inf_nan=False)] = 0.0,
        stream: Annotated[bool, Form()] = False,
        chunking_strategy: Annotated[Literal["auto"], Form()] = "auto",
    ) -> None:
        self.file = file
        self.model = model
        self.language = language
        self.prompt = prompt
        self.response_format = response_format
        self.temperature = temperature
        self.stream = stream
        self.granularities = timestamp_granularities

    @staticmethod
    def check_names(sent: Iterable[tuple[str, Any]]) -> None:
        """
        Args:
            sent: the fields that the client sent.

        Raises:
            ApiError: 400, a field is unknown, or comes more often than it may.
        """
        check_fields(sent, _FIELDS, repeated={_GRANULARITIES})

    def check_values(self) -> None:
        """
        Raises:
            ApiError: 400, a field asks for what no model here can do.
        """
        if self.language:
            raise _refused("language", "no model here can be told the language; leave it out")
        if self.prompt:
            raise _refused("prompt", "no model here takes one; leave it out")
        if "word" in self.granularities:
            raise _refused(_GRANULARITIES, "no model here gives the times of words")
        if self.granularities and self.response_format != "verbose_json":
            raise _refused(_GRANULARITIES, "goes with response_format verbose_json")
        if self.stream and self.response_format not in _STREAMED:
            raise _refused("stream", f"goes with response_format {' or '.join(_STREAMED)}")


def _refused(param: str, message: str) -> ApiError:
    return ApiError(400, f"{param}: {message}", param=param)
