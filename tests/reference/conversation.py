"""Prompts, written out by hand from the families' published layouts.

OpusLM lays out undelayed rows and delays the whole sequence at once, as its training code does;
Bagpiper delays each stretch of audio and fills holes with the stream's own pad.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tests.reference.model import PromptRow, Row

Turn = tuple[str, str, Sequence[int] | Sequence[Sequence[int]] | Tensor]
"""Role, ``text``, ``audio`` or ``speaker``, and text ids, aligned codes of all streams, or, of what
Bagpiper's users say, embeddings."""

_SSL, _CODEC, _STREAMS = 256, 5256, 9


def opuslm_text(text: Sequence[int]) -> list[Row]:
    """A text to be continued."""
    return _delayed([_mark(5), _mark(64), *map(_mark, text)])


def opuslm_speech(text: Sequence[int]) -> list[Row]:
    """A text to be spoken."""
    return _delayed([_mark(5), _mark(82), _mark(35), *map(_mark, text), *_zeros()])


def opuslm_transcription(codes: Sequence[Sequence[int]]) -> list[Row]:
    """Codec and SSL frames to text."""
    audio = [_mark(34), *map(_frame, codes), _mark(34), *_zeros()]
    return _delayed([_mark(5), _mark(80), *audio, _mark(35)])


def opuslm_cloning(text: Sequence[int], speaker: Sequence[Sequence[int]]) -> list[Row]:
    """A text to be spoken like a reference."""
    rows = [_mark(5), _mark(81), _mark(35), *map(_mark, text), *_zeros()]
    return _delayed([*rows, _mark(37), *_speaker(speaker), *_zeros()])


def dialogue(turns: Sequence[Turn], *, spoken: bool) -> list[Row]:
    """Turns of OpusLM-Dialogue, up to where the assistant's text begins.

    Args:
        spoken: the answer will be text and audio, not text alone.
    """
    heard = any(content != "text" for _, content, _ in turns)
    rows = [_mark(5), _mark(89 if spoken or heard else 88)]
    for role, content, value in turns:
        rows.append(_mark({"system": 8, "user": 9, "assistant": 10}[role]))
        if content == "text":
            rows += [_mark(35), *(_mark(int(i)) for i in value)]  # type: ignore[arg-type]
        elif content == "audio":
            rows += [_mark(34), *(_frame(f) for f in value)]  # type: ignore[arg-type]
        else:
            rows += [_mark(37), *_speaker(value)]  # type: ignore[arg-type]
        rows += _zeros()
    return _delayed([*rows, _mark(10), _mark(35)])


def dialogue_speech(text: Sequence[int]) -> list[Row]:
    """A text to be spoken by the dialogue model's assistant, up to its audio mark."""
    said = [_mark(10), _mark(35), *map(_mark, text), *_zeros()]
    return _delayed([_mark(5), _mark(89), *said, _mark(10)])


def dialogue_cloning(text: Sequence[int], speaker: Sequence[Sequence[int]]) -> list[Row]:
    """The same with a voice."""
    voice = [_mark(8), _mark(37), *_speaker(speaker), *_zeros()]
    said = [_mark(10), _mark(35), *map(_mark, text), *_zeros()]
    return _delayed([_mark(5), _mark(89), *voice, *said, _mark(10)])


def bagpiper(turns: Sequence[Turn], answer: str) -> list[PromptRow]:
    """Turns of Bagpiper, up to the answer.

    Args:
        answer: ``audio`` ends with the assistant's mark, others with that of text too.
    """
    roles = [role for role, _, _ in turns] + ["assistant"]
    rows: list[PromptRow] = [[1, *[0] * 7]]
    for i, (role, content, value) in enumerate(turns):
        rows.append([{"system": 4, "user": 5, "assistant": 6}[role], *[0] * 7])
        if content == "text":
            rows.append([7, *[0] * 7])
            rows += [[int(x), *[0] * 7] for x in value]  # type: ignore[arg-type]
        elif isinstance(value, Tensor):
            rows += [[8, *[0] * 7], *value]
        else:
            rows.append([8, *[0] * 7])
            for r in range(len(value) + 7):
                row = []
                for s in range(8):
                    pad = 152192 + 1025 * s
                    inside = 0 <= r - s < len(value)
                    row.append(pad + 1 + value[r - s][s] if inside else pad)  # type: ignore[index]
                rows.append(row)
        rows.append([3 if roles[i + 1] == role else 2, *[0] * 7])
    rows.append([6, *[0] * 7])
    return rows if answer == "audio" else [*rows, [7, *[0] * 7]]


def _mark(i: int) -> list[int]:
    return [i, *[0] * (_STREAMS - 1)]


def _zeros() -> list[list[int]]:
    return [_mark(0) for _ in range(_STREAMS - 1)]


def _frame(codes: Sequence[int]) -> list[int]:
    return [_SSL + codes[0], *(_CODEC + 1024 * k + c for k, c in enumerate(codes[1:]))]


def _speaker(codes: Sequence[Sequence[int]]) -> list[list[int]]:
    frames = [_frame(c) for c in codes[:500]]
    return frames + [_mark(0) for _ in range(500 - len(frames))]


def _delayed(rows: Sequence[Sequence[int]]) -> list[Row]:
    """Stream ``s`` comes ``s`` rows later."""
    assert not any(rows[-1 - late][s] for s in range(1, _STREAMS) for late in range(s))
    return [[rows[r - s][s] if r >= s else 0 for s in range(_STREAMS)] for r in range(len(rows))]
