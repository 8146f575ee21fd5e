"""Prompts of texts that are to be spoken as instructions say, for families that take them."""

from __future__ import annotations

from collections.abc import Sequence

from engine_adapter.request import RequestError
from engine_adapter.spec import INSTRUCTIONS_SLOT, TEXT_SLOT, StreamSpec


def instructed_prompt(
    spec: StreamSpec, instructions: Sequence[int], text: Sequence[int]
) -> list[int]:
    """Ids of stream 0, without the bridge that opens audio.

    Args:
        instructions, text: model ids.

    Raises:
        RequestError: the family takes no instructions, or either has no ids.
    """
    if not spec.instructed:
        raise RequestError("instructions", f"{spec.family} takes none")
    slots = {INSTRUCTIONS_SLOT: instructions, TEXT_SLOT: text}
    for slot, ids in slots.items():
        if not ids:
            raise RequestError(slot, "is empty")
    prompt: list[int] = []
    for item in spec.instructed:
        prompt.extend([item] if isinstance(item, int) else slots[item])
    return prompt
