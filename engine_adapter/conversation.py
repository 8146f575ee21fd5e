"""Prompts of several parts: turns of a conversation, audio to write down, a voice to imitate.

One builder for every family; what it writes is data (``engine_adapter.layout``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine_adapter.delay import interleave
from engine_adapter.embedded import EmbeddedRows
from engine_adapter.layout import Content, Layout, Role, Segment
from engine_adapter.request import RequestError
from engine_adapter.spec import Output, StreamSpec

Rows = NDArray[np.int32]
Codes = NDArray[np.integer]
Embeddings = NDArray[np.float32]
PARAM = "turns"


@dataclass(frozen=True)
class Part:
    """One piece of a prompt.

    Attributes:
        value: model ids of a text; of audio and speakers aligned 0-based codes of all
            streams, ``[frames, streams]``, or, where the segment is embedded, float32
            ``[rows, hidden]``.
    """

    role: Role
    content: Content
    value: Sequence[int] | Codes | Embeddings


@dataclass(frozen=True)
class Prompt:
    """A prompt, without the bridge that opens audio.

    Attributes:
        rows: ids, int32 ``[rows, streams]``.
        embedded: those of the rows that are embeddings; None if none is.
    """

    rows: Rows
    embedded: EmbeddedRows | None = None


def prompt(spec: StreamSpec, layout: Layout, output: Output, parts: Sequence[Part]) -> Prompt:
    """The prompt that a layout makes of parts.

    Args:
        layout: one of the spec's.
        parts: in order.

    Raises:
        RequestError: the layout has no such part or output, a part is empty, a code is out
            of range, or an embedding is no number; the field is ``PARAM``.
    """
    if output not in layout.answers:
        raise RequestError("output", f"{spec.family} does not answer with {output!r} here")
    if not parts:
        raise RequestError(PARAM, "there is none")
    silent = output == "text" and all(part.content == "text" for part in parts)
    rows = [_marks(spec, (silent and layout.silent_begin) or layout.begin)]
    embedded: list[EmbeddedRows] = []
    for index, part in enumerate(parts):
        segment = layout.segment(part.role, part.content)
        if segment is None:
            raise RequestError(
                PARAM, f"{spec.family} takes no {part.content} as a part of the {part.role}"
            )
        next_role = parts[index + 1].role if index + 1 < len(parts) else "assistant"
        closes = segment.closes
        if next_role == part.role and layout.same_role_closes:
            closes = layout.same_role_closes
        rows.append(_marks(spec, segment.opens))
        if segment.embedded:
            embeddings = _embeddings(part.value)
            embedded.append(EmbeddedRows.stretch(sum(map(len, rows)), embeddings))
            rows.append(_marks(spec, [0] * len(embeddings)))
        elif segment.has_codes:
            rows.append(_codes(spec, segment, np.asarray(part.value)))
        else:
            rows.append(_text(spec, segment, part))
        rows.append(_marks(spec, closes))
    rows.append(_marks(spec, layout.answers[output]))
    return Prompt(np.concatenate(rows), EmbeddedRows.join(embedded))


def cloning_parts(layout: Layout, text: Sequence[int], speaker: Codes) -> list[Part]:
    """The parts of a text and a reference, in the order in which a family wants them.

    Args:
        layout: a spec's ``cloning``.
        text: model ids.
        speaker: codes of the reference, ``[frames, streams]``.
    """
    return [
        Part(segment.role, segment.content, speaker if segment.has_codes else text)
        for segment in layout.segments
    ]


def _marks(spec: StreamSpec, ids: Sequence[int]) -> Rows:
    rows = np.zeros((len(ids), spec.num_streams), dtype=np.int32)
    rows[:, 0] = ids
    return rows


def _text(spec: StreamSpec, segment: Segment, part: Part) -> Rows:
    if len(part.value) == 0:
        raise RequestError(PARAM, f"a text of the {part.role} is empty")
    return _marks(spec, [*part.value, *segment.ends, *[0] * segment.drain])


def _embeddings(value: Sequence[int] | Codes | Embeddings) -> Embeddings:
    rows = np.asarray(value)
    if rows.ndim != 2 or rows.dtype != np.float32 or rows.size == 0:
        raise RequestError(
            PARAM,
            f"audio must be embeddings, float32 [rows, hidden], got {rows.dtype} "
            f"{list(rows.shape)}",
        )
    if not np.isfinite(rows).all():
        raise RequestError(PARAM, "audio has an embedding that is not a finite number")
    return rows


def _codes(spec: StreamSpec, segment: Segment, codes: Codes) -> Rows:
    """Content, ``ends`` and ``drain``."""
    ids = _ids(spec, codes)
    pads = np.array([stream.pad_id for stream in spec.streams], dtype=np.int32)
    if segment.frames is not None:
        missing = max(0, segment.frames - len(ids))
        ids = np.concatenate([ids[: segment.frames], np.tile(pads, (missing, 1))])
    rows = interleave(ids, spec.delays, pads.tolist())
    length = len(ids) + len(segment.ends) + segment.drain
    rows = np.concatenate([rows, np.tile(pads, (length - len(rows), 1))])
    rows[len(ids) : len(ids) + len(segment.ends), 0] = segment.ends
    return rows


def _ids(spec: StreamSpec, codes: Codes) -> Rows:
    if codes.ndim != 2 or codes.shape[1] != spec.num_streams or len(codes) == 0:
        raise RequestError(
            PARAM, f"audio must be codes [frames, {spec.num_streams}], got {list(codes.shape)}"
        )
    sizes = np.array([stream.size for stream in spec.streams])
    if (codes < 0).any() or (codes >= sizes).any():
        raise RequestError(PARAM, "audio has a code that its stream does not have")
    first = np.array([stream.first_id for stream in spec.streams])
    return (codes + first).astype(np.int32)
