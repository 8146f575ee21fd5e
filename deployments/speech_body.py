"""The body of ``POST /v1/audio/speech``: OpenAI's fields and our extensions."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from deployments.audio.formats import AudioFormat

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class VoiceReference(BaseModel):
    """A voice by its id, the other form OpenAI's clients send."""

    model_config = _STRICT

    id: str


class SpeechBody(BaseModel):
    """What may be asked. Every field is honoured or refused; an unknown one is refused.

    Attributes:
        stream: whether audio is sent while it is generated; None: see ``streamed``.
        others: OpenAI's, or as in ``engine_adapter.request.SpeechRequest``.
    """

    model_config = _STRICT

    model: str
    input: str
    voice: str | VoiceReference
    response_format: AudioFormat | None = None
    stream_format: Literal["audio"] | None = None
    speed: float | None = None
    instructions: str | None = None
    stream: bool | None = None
    cfg_scale: float | None = None
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_duration_seconds: float | None = Field(None, gt=0)

    @field_validator("input")
    @classmethod
    def _can_be_spoken(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("is empty")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("has half of a surrogate pair")
        if not any(character.isalnum() for character in text):
            raise ValueError("has neither a letter nor a digit, so there is nothing to speak")
        return text

    @field_validator("speed")
    @classmethod
    def _normal_speed(cls, speed: float | None) -> float | None:
        if speed not in (None, 1.0):
            raise ValueError("no model here can change its speed; only 1.0 is possible")
        return speed

    @field_validator("instructions")
    @classmethod
    def _no_instructions(cls, instructions: str | None) -> str | None:
        if instructions:
            raise ValueError("no model here follows instructions")
        return instructions

    @property
    def voice_id(self) -> str:
        """The voice, in whichever form it was given."""
        return self.voice if isinstance(self.voice, str) else self.voice.id

    @property
    def audio_format(self) -> AudioFormat:
        """The format of the answer."""
        return self.response_format or "wav"

    def streamed(self, client_streams: bool) -> bool:
        """Whether to send audio while it is generated.

        Args:
            client_streams: the client has said by other means that it reads piece by piece.
        """
        if self.stream is not None:
            return self.stream
        return self.audio_format == "pcm" or client_streams
