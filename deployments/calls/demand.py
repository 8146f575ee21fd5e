"""What a request will need of a replica, as far as it shows before the replica has seen it."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cfg_pairing.routing import Demand
from deployments.calls.answer_messages import AnswerCall, CallPart, Clip
from deployments.calls.messages import SpeechCall

Call = SpeechCall | AnswerCall

_CHARACTERS_PER_SECOND = 15.0  # of English that is read aloud
_CHARACTERS_PER_ROW = 4
_HASHED_BYTES = 1 << 16  # of a recording; two that begin alike for so long are the same


def rows_of(call: Call, default_scale: float) -> int:
    """Rows of a step it takes at most.

    Args:
        default_scale: guidance of the model's audio where a request does not say.
    """
    if isinstance(call, AnswerCall) and "audio" not in call.output:
        return 1
    scale = default_scale if call.cfg_scale is None else call.cfg_scale
    return 2 if scale > 1 else 1


def demand_of(call: Call, default_scale: float, samples_per_row: int) -> Demand:
    """The same, and what its prompt begins with.

    Args:
        samples_per_row: of audio that the model hears.
    """
    rows = rows_of(call, default_scale)
    if isinstance(call, AnswerCall):
        # What is answered comes last; in the next turn, all before it comes again.
        earlier = sum(_prompt_rows(part, samples_per_row) for part in call.parts[:-1])
        return Demand(rows, _digest(call.parts[0]), earlier) if call.parts else Demand(rows)
    if call.speaker is not None:
        return Demand(rows, _hash(call.speaker), len(call.speaker))
    return Demand(rows, call.voice.encode())


def audio_seconds(call: Call) -> float:
    """Of audio that it will make, by the length of its text; 0 if that does not show."""
    if isinstance(call, AnswerCall):
        return 0.0
    characters = sum(len(utterance.text) for utterance in call.utterances)
    seconds = characters / _CHARACTERS_PER_SECOND
    return seconds if call.max_seconds is None else min(seconds, call.max_seconds)


def _prompt_rows(part: CallPart, samples_per_row: int) -> int:
    if isinstance(part.value, str):
        return len(part.value) // _CHARACTERS_PER_ROW
    if isinstance(part.value, Clip):
        return len(part.value.samples) // samples_per_row
    return len(part.value)


def _digest(part: CallPart) -> bytes:
    if isinstance(part.value, str):
        return blake2b(part.value.encode(), digest_size=16).digest()
    return _hash(part.value.samples if isinstance(part.value, Clip) else part.value)


def _hash(array: NDArray[np.generic]) -> bytes:
    start = array[: _HASHED_BYTES // max(1, array[:1].nbytes)]
    return blake2b(start.tobytes(), digest_size=16).digest()
