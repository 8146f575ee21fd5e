"""A call for speech, for the engine: the prompt of one of its utterances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from deployments.calls.answer_messages import Codes
from deployments.calls.messages import SpeechCall
from engine_adapter import conversation
from engine_adapter.instructed import instructed_prompt
from engine_adapter.request import RequestError, SpeechRequest
from engine_adapter.spec import StreamSpec


class Encoder(Protocol):
    """The tokenizer."""

    def encode(self, text: str) -> Sequence[int]:
        """Model ids of a text."""


def utterance_request(
    spec: StreamSpec, tokenizer: Encoder, call: SpeechCall, text: str, seed: int
) -> SpeechRequest:
    """
    Args:
        text: of the utterance.
        seed: of the utterance.

    Raises:
        RequestError: the family cannot speak like that.
    """
    spoken: dict[str, Any] = {"text": text}
    instructions = spec.instructions if call.instructions is None else call.instructions
    if call.speaker is not None:
        spoken = {"prompt_ids": _cloning_prompt(spec, tokenizer.encode(text), call.speaker)}
    elif instructions:
        prompt = instructed_prompt(spec, tokenizer.encode(instructions), tokenizer.encode(text))
        spoken = {"prompt_ids": prompt}
    elif spec.voices:
        spoken["voice"] = call.voice
    return SpeechRequest(
        **spoken,
        output=spec.speech_output,
        cfg_scale=call.cfg_scale,
        seed=seed,
        temperature=call.temperature,
        top_k=call.top_k,
        top_p=call.top_p,
    )


def _cloning_prompt(spec: StreamSpec, text: Sequence[int], speaker: Codes) -> list[list[int]]:
    layout = spec.cloning
    if layout is None:
        raise RequestError("voice", f"{spec.family} clones no voices")
    parts = conversation.cloning_parts(layout, text, speaker)
    prompt = conversation.prompt(spec, layout, spec.speech_output, parts)
    rows: list[list[int]] = prompt.rows.tolist()
    return rows
