"""The body of ``POST /v1/audio/speech``: OpenAI's fields and our extensions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, field_validator

from deployments.audio.formats import MAX_RATE, MIN_RATE, AudioFormat, require_rate
from deployments.audio.speed import MAX_SPEED, MIN_SPEED
from deployments.calls.messages import SpeechCall, Utterance
from deployments.validation import (
    INTEGRAL,
    STRICT,
    Count,
    Encodable,
    Probability,
    Scale,
    Seed,
    Temperature,
)

LONGEST_INSTRUCTIONS = 4096  # characters, as OpenAI's


class VoiceReference(BaseModel):
    """A voice by its id, the other form OpenAI's clients send."""

    model_config = STRICT

    id: Encodable


def _form_of_voice(voice: Any) -> str | None:
    if isinstance(voice, str):
        return "name"
    return "reference" if isinstance(voice, dict | VoiceReference) else None


Voice = Annotated[
    Annotated[Encodable, Tag("name")] | Annotated[VoiceReference, Tag("reference")],
    Discriminator(
        _form_of_voice,
        custom_error_type="voice",
        custom_error_message='must be a name or {"id": name}',
    ),
]
"""A voice in either form."""


def voice_id(voice: str | VoiceReference) -> str:
    """The voice, in whichever form it was given."""
    return voice if isinstance(voice, str) else voice.id


class SpeechOptions(BaseModel):
    """How a text is to be spoken. Every field is honoured or refused; an unknown one is refused.

    Attributes:
        sample_rate: of the answer, in Hz; None: see ``deployments.audio.formats.encoder``.
        normalize: False gives the model the text as it is.
        instructions: how to speak, for models that take instructions; a blank one says nothing.
        others: OpenAI's, or as in ``engine_adapter.request.SpeechRequest``.
    """

    model_config = STRICT

    model: str
    voice: Voice
    response_format: AudioFormat = "mp3"
    speed: float = Field(1.0, ge=MIN_SPEED, le=MAX_SPEED)
    sample_rate: Annotated[int, Field(ge=MIN_RATE, le=MAX_RATE), INTEGRAL] | None = None
    normalize: bool = True
    instructions: Encodable | None = Field(None, max_length=LONGEST_INSTRUCTIONS)
    cfg_scale: Scale | None = None
    seed: Seed | None = None
    temperature: Temperature | None = None
    top_k: Count | None = None
    top_p: Probability | None = None
    max_duration_seconds: float | None = Field(None, gt=0)

    @field_validator("instructions")
    @classmethod
    def _says_something(cls, instructions: str | None) -> str | None:
        return instructions if instructions and instructions.strip() else None

    @property
    def voice_id(self) -> str:
        """The voice, in whichever form it was given."""
        return voice_id(self.voice)

    def fault(self) -> tuple[str, str] | None:
        """The first field that contradicts another one, and how."""
        if self.sample_rate is not None:
            try:
                require_rate(self.response_format, self.sample_rate)
            except ValueError as error:
                return "sample_rate", str(error)
        return None

    def call(
        self,
        request_id: str,
        utterances: tuple[Utterance, ...],
        *,
        seed: int | None,
        seconds: float,
        first_index: int = 0,
    ) -> SpeechCall:
        """What a replica is sent for some of the text.

        Args:
            seconds: of audio at most.
            seed, first_index: see ``SpeechCall``.
        """
        return SpeechCall(
            request_id=request_id,
            utterances=utterances,
            voice=self.voice_id,
            instructions=self.instructions,
            cfg_scale=self.cfg_scale,
            seed=seed,
            first_index=first_index,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            max_seconds=seconds,
        )


class SpeechBody(SpeechOptions):
    """The body itself.

    Attributes:
        stream: whether audio is sent while it is generated; None: see ``streamed``.
    """

    input: Encodable = Field(min_length=1, json_schema_extra={"pattern": r"\S"})
    stream_format: Literal["audio", "sse"] = "audio"
    stream: bool | None = None

    @field_validator("input")
    @classmethod
    def _can_be_spoken(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("is empty")
        return text

    def fault(self) -> tuple[str, str] | None:
        """The first field that contradicts another one, and how."""
        if self.stream is False and self.stream_format == "sse":
            return "stream", "is false, but stream_format sse is a stream"
        return super().fault()

    def streamed(self, client_streams: bool) -> bool:
        """Whether to send audio while it is generated.

        Args:
            client_streams: the client has said by other means that it reads piece by piece.
        """
        if self.stream is not None:
            return self.stream
        return self.stream_format == "sse" or self.response_format == "pcm" or client_streams
