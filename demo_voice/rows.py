"""An utterance as the rows that the served model will see, and what it must predict from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine_adapter.spec import TEXT_SLOT, VOICE_SLOT, StreamSpec

IGNORED = -100
"""A target that is forced or padded in serving, and therefore not learned."""

_LENGTHS = {" ": 0.6, "'": 0.2, ",": 4.0, ".": 5.0, "?": 5.0, "!": 5.0}
"""How long a byte takes to speak, in letters."""


@dataclass(frozen=True)
class Example:
    """Rows of one utterance.

    Attributes:
        ids: int64 ``[rows, streams]``, prompt and audio; the last row is only a target.
        targets: int64 ``[rows - 1, streams]``: the class that the next row has on each stream,
        a code, or on stream 0 the codebook's size for the end; ``IGNORED`` elsewhere.
        places: float32 ``[rows - 1]``: about which row of the prompt is spoken in the next row;
            not a number where that is no frame, or there is no text.
    """

    ids: NDArray[np.int64]
    targets: NDArray[np.int64]
    places: NDArray[np.float32]


def build(
    spec: StreamSpec, text_ids: list[int], voice: str, codes: NDArray[np.uint8], *, prompted: bool
) -> Example:
    """The rows of docs/generation.md, "Phases", for an utterance that ends by itself.

    Args:
        text_ids: model ids of the text.
        codes: ``[frames, streams]``.
        prompted: False leaves the unconditional prompt of guidance instead of the text.
    """
    slots: dict[int | str, list[int]] = {TEXT_SLOT: text_ids, VOICE_SLOT: [*spec.voices[voice]]}
    layout = spec.prompts["audio"] if prompted else spec.unconditional_prompt
    prompt = [i for item in layout for i in slots.get(item, [item])] + [spec.audio_begin]
    frames = len(codes)
    rows = np.zeros((len(prompt) + frames + spec.tail_rows, spec.num_streams), dtype=np.int64)
    targets = np.full((len(rows) - 1, spec.num_streams), IGNORED, dtype=np.int64)
    rows[: len(prompt), 0] = prompt
    for index, stream in enumerate(spec.streams):
        first = len(prompt) + stream.delay
        rows[len(prompt) :, index] = stream.pad_id
        rows[first : first + frames, index] = stream.first_id + codes[:, index].astype(np.int64)
        targets[first - 1 : first - 1 + frames, index] = codes[:, index]
    end = len(prompt) + frames
    rows[end, 0] = spec.audio_end_ids[0]
    rows[end + 1 :, 0] = spec.drain_id
    targets[end - 1, 0] = spec.streams[0].size
    places = np.full(len(targets), np.nan, dtype=np.float32)
    if prompted:
        first = prompt.index(text_ids[0], layout.index(TEXT_SLOT))
        places[len(prompt) - 1 : end - 1] = first + _places(text_ids, frames, spec)
    return Example(rows, targets, places)


def _places(text_ids: list[int], frames: int, spec: StreamSpec) -> NDArray[np.float32]:
    """About which byte of the text each frame speaks, were all letters equally long."""
    assert spec.text is not None
    lengths = [_LENGTHS.get(chr(i - spec.text.first_id), 1.0) for i in text_ids]
    lengths[-1] = min(lengths[-1], 1.5)  # there is no pause after the last word
    ends = np.cumsum(lengths)
    times = (np.arange(frames) + 0.5) / frames * ends[-1]
    return np.searchsorted(ends, times).astype(np.float32)
