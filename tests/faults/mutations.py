"""Files that are almost right."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

TRIES = settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "40")))
"""Of each test; as many as one has time for."""


@st.composite
def mutated(draw: st.DrawFn, good: bytes, tokens: Sequence[bytes] = ()) -> bytes:
    """``good`` after one to four edits: a byte is another, bytes are put in, left out or repeated,
    or the end is missing.

    Args:
        tokens: what may be put in, beside random bytes.
    """
    data = bytearray(good)
    inserted = st.binary(max_size=8)
    if tokens:
        inserted |= st.sampled_from(tokens)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("change", "insert", "leave out", "repeat", "cut"))):
            case "change":
                data[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                data[place:place] = draw(inserted)
            case "leave out":
                del data[place : place + draw(st.integers(1, 64))]
            case "repeat":
                data[place:place] = data[place : place + draw(st.integers(1, 64))]
            case "cut":
                del data[place:]
    return bytes(data)


SCALARS: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, float("nan"), float("inf"), 10**30, -1e308),
    *("", "x", "a\nb", "\N{LATIN SMALL LETTER E WITH ACUTE}", "1", "auto"),
)
KEYS = ("x", "a\nb", "name", "path", "id")


@st.composite
def rebuilt(draw: st.DrawFn, good: Any) -> Any:
    """Plain data like ``good``, with one or two values or keys that do not belong there."""
    for _ in range(draw(st.integers(1, 2))):
        good = _with_one_other(draw, good)
    return good


def _with_one_other(draw: st.DrawFn, value: Any) -> Any:
    inside: list[Any] = list(value) if isinstance(value, dict) else []
    inside = list(range(len(value))) if isinstance(value, list) else inside
    if not inside or draw(st.integers(0, 5)) == 0:
        other = st.sampled_from(SCALARS)
        return draw(
            other | st.lists(other, max_size=2) | st.dictionaries(st.sampled_from(KEYS), other)
        )
    at = draw(st.sampled_from(inside))
    if isinstance(value, list):
        return [*value[:at], _with_one_other(draw, value[at]), *value[at + 1 :]]
    if draw(st.integers(0, 5)) == 0:
        return {**value, draw(st.sampled_from(KEYS)): draw(st.sampled_from(SCALARS))}
    return {**value, at: _with_one_other(draw, value[at])}
