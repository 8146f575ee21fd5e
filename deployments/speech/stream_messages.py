"""What a client and ``/v1/audio/speech/stream`` send each other, as JSON texts.

Audio goes between them as binary messages.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from deployments.audio.formats import AudioFormat
from deployments.calls.messages import usage
from deployments.speech.body import SpeechOptions
from deployments.validation import STRICT


class Start(SpeechOptions):
    """The first message: what is to speak, and how."""

    type: Literal["start"]
    response_format: AudioFormat = "pcm"


class Text(BaseModel):
    """The next piece of the text, cut anywhere."""

    model_config = STRICT

    type: Literal["text"]
    text: str


class Flush(BaseModel):
    """Speak what has come so far, whether or not a sentence has ended."""

    model_config = STRICT

    type: Literal["flush"]


class Cancel(BaseModel):
    """Stop speaking at once, and forget the text that was not spoken."""

    model_config = STRICT

    type: Literal["cancel"]


class End(BaseModel):
    """As ``Flush``; the connection is closed when all is spoken."""

    model_config = STRICT

    type: Literal["end"]


ClientMessage = Annotated[Start | Text | Flush | Cancel | End, Field(discriminator="type")]
CLIENT_MESSAGE: TypeAdapter[ClientMessage] = TypeAdapter(ClientMessage)


def started(seed: int, sample_rate: int, media_type: str) -> dict[str, Any]:
    """What the audio is that follows, until ``done`` or ``cancelled``."""
    return {
        "type": "started",
        "seed": seed,
        "sample_rate": sample_rate,
        "media_type": media_type,
    }


def spoken(index: int, text: str) -> dict[str, Any]:
    """The audio that follows is of this utterance, or of those since the last such message."""
    return {"type": "utterance", "index": index, "text": text}


def done(finish_reason: str, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    """All text before a ``flush`` or ``end`` is spoken; each of them has its own."""
    return {
        "type": "done",
        "finish_reason": finish_reason,
        "usage": usage(input_tokens, output_tokens),
    }


def cancelled() -> dict[str, Any]:
    """No audio follows that was asked for before the ``cancel``."""
    return {"type": "cancelled"}


def failed(error: dict[str, Any]) -> dict[str, Any]:
    """Something was refused or broke; ``error`` is that of the HTTP answers."""
    return {"type": "error", **error}
