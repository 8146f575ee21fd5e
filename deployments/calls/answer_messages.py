"""What the ingress and an engine replica say to each other about an answer to several parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cfg_pairing.admission import Priority
from deployments.calls.messages import Accepted, Dead, Queued, Refused
from engine_adapter.layout import Content, Role
from engine_adapter.request import FinishReason
from engine_adapter.spec import Output

Codes = NDArray[np.int32]
"""Aligned 0-based codes of all streams, int32 ``[frames, streams]``."""


@dataclass(frozen=True)
class Clip:
    """Audio that is not encoded yet: mono float32 ``[samples]`` at the codec's rate."""

    samples: NDArray[np.float32]


@dataclass(frozen=True)
class CallPart:
    """One part of a prompt: a text, or audio."""

    role: Role
    content: Content
    value: str | Clip | Codes


@dataclass(frozen=True)
class AnswerCall:
    """A request for an answer, after the checks that need no model.

    Attributes:
        request_id: for logs; need not be unique.
        param: the API's name of the field that the parts came from.
        max_tokens: text ids and frames at most, together.
        priority: where no rows are free, in which class it waits.
        trace: see ``deployments.tracing``.
        others: as in ``engine_adapter.request.SpeechRequest``.
    """

    request_id: str
    task: Literal["conversation", "transcription"]
    output: Output
    parts: tuple[CallPart, ...]
    param: str
    cfg_scale: float | None = None
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    priority: Priority = "standard"
    trace: str | None = None


@dataclass(frozen=True)
class TextPiece:
    """Text that became complete; never empty."""

    text: str


@dataclass(frozen=True)
class Answered:
    """Last event: everything was sent.

    Attributes:
        prompt_tokens: rows of the prompt.
        prompt_frames: those of them that carry audio.
        text_tokens, frames: of the answer.
        codes: of the answer.
    """

    finish_reason: FinishReason
    prompt_tokens: int
    prompt_frames: int
    text_tokens: int
    frames: int
    codes: Codes


# bytes: PCM, signed 16-bit little-endian mono, never empty.
AnswerEvent = Dead | Queued | Accepted | Refused | TextPiece | bytes | Answered
