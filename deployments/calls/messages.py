"""What the ingress and an engine replica say to each other about one request.

Plain data, so that both sides can be tested without the other. A refusal is a message
and not an exception: it has a status and a field, and must not look like a failure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cfg_pairing.admission import Priority
from engine_adapter.request import FinishReason


@dataclass(frozen=True)
class Utterance:
    """What a model speaks at once.

    Attributes:
        pause: seconds of silence behind it, if another one follows.
    """

    text: str
    pause: float = 0.0


@dataclass(frozen=True)
class SpeechCall:
    """A request for speech, after the checks that need no model.

    Attributes:
        request_id: for logs; need not be unique.
        utterances: what to say, in order; at least one.
        voice: one that the API offers; a model that knows no voices ignores it.
        seed: of the whole that these utterances belong to; None draws one.
        first_index: of the first of them in that whole. Each has a seed of its own, made from
            ``seed`` and its index.
        max_seconds: audio at most, of all utterances together.
        speaker: codes ``[frames, streams]`` of a recording whose voice is wanted, instead of
            ``voice``.
        instructions: how to speak, for models that take instructions.
        priority: where no rows are free, in which class it waits.
        trace: see ``deployments.tracing``.
        others: as in ``engine_adapter.request.SpeechRequest``.
    """

    request_id: str
    utterances: tuple[Utterance, ...]
    voice: str
    cfg_scale: float | None = None
    seed: int | None = None
    first_index: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    speaker: NDArray[np.int32] | None = None
    instructions: str | None = None
    max_seconds: float | None = None
    priority: Priority = "standard"
    trace: str | None = None


@dataclass(frozen=True)
class Queued:
    """First event of a request for which no rows are free yet.

    Attributes:
        seconds: after which it is accepted, or refused.
    """

    seconds: float


@dataclass(frozen=True)
class Accepted:
    """First event of a request that is served now; after ``Queued``, if it had to wait.

    Attributes:
        seed: the one that is used, see ``SpeechCall``.
        sample_rate: of the PCM that follows, in Hz.
    """

    seed: int
    sample_rate: int


@dataclass(frozen=True)
class FirstAudio:
    """The first PCM of a request, and what the replica spent its time on until then.

    Attributes:
        pcm: as the pieces that follow.
        prefill: seconds until the engine had the first row, which it may have waited for a place
            to begin with.
        frames: seconds until there were enough frames to decode.
        vocoder: seconds until they were PCM.
    """

    pcm: bytes
    prefill: float
    frames: float
    vocoder: float


@dataclass(frozen=True)
class Dead:
    """Only event of a request that came to a replica whose engine is dead: nothing was done for
    it, so another replica may be asked.

    Attributes:
        replica: Serve's id of it.
    """

    replica: str


@dataclass(frozen=True)
class Refused:
    """Last event of a request that is not served, or no further.

    Attributes:
        status: HTTP status.
        param: the API's name of the field at fault.
        retry_after: seconds after which there will probably be room; None: it is not known.
    """

    status: int
    message: str
    param: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Finished:
    """Last event: all audio was sent.

    Attributes:
        finish_reason: ``length`` if any utterance was cut, or not spoken.
        input_tokens: rows of all prompts, those of guidance left aside.
        output_tokens: frames.
    """

    finish_reason: FinishReason
    input_tokens: int
    output_tokens: int


def usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    """What was read and written, as OpenAI's audio events say it."""
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }


# bytes: PCM, signed 16-bit little-endian mono, never empty.
SpeechEvent = Dead | Queued | Accepted | Refused | FirstAudio | bytes | Finished
