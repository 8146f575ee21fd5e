"""Rows that are embeddings: what travels, what a step is given of them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_adapter.embedded import EmbeddedHistory, EmbeddedRows
from engine_adapter.families import FAMILIES
from engine_adapter.request import RequestError, SpeechRequest, resolve

BAGPIPER = FAMILIES["bagpiper"]
LENGTH = 30


def rows_at(positions: list[int], slot: int = 0) -> EmbeddedRows:
    """Embeddings that say where they belong."""
    where = np.array(positions, dtype=np.int32)
    return EmbeddedRows(where, np.stack([np.full(len(where), slot), where], 1).astype(np.float32))


positions = st.lists(st.integers(0, LENGTH - 1), unique=True, max_size=LENGTH).map(sorted)


@given(positions)
def test_unpack_undoes_pack(where: list[int]) -> None:
    if not where:
        assert EmbeddedRows.unpack(b"", b"") is None
        return
    rows = rows_at(where)
    read = EmbeddedRows.unpack(*rows.pack())
    assert read is not None
    assert read.positions.tolist() == where
    assert read.embeddings.tolist() == rows.embeddings.tolist()


@given(
    st.lists(positions, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, 9)), min_size=4, max_size=4),
)
def test_a_step_gets_what_its_window_has(
    prompts: list[list[int]], windows: list[tuple[int, int]]
) -> None:
    """Whatever pieces prompts are read in; again and again, as after a preemption."""
    history = EmbeddedHistory(1)
    history.grow(len(prompts))
    for slot, where in enumerate(prompts):
        history.put(slot, rows_at([0, 1]))  # of whoever had the slot before
        history.put(slot, rows_at(where, slot) if where else None)
    batch = list(range(len(prompts)))[::-1]
    starts = np.array([windows[slot][0] for slot in batch], dtype=np.int32)
    counts = [windows[slot][1] for slot in batch]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    expected = {
        int(offsets[i]) + position - int(starts[i]): [float(slot), float(position)]
        for i, slot in enumerate(batch)
        for position in prompts[slot]
        if starts[i] <= position < starts[i] + counts[i]
    }
    for _ in range(2):
        found = history.gather(np.array(batch), starts, offsets)
        if not expected:
            assert found is None
            continue
        assert found is not None
        assert found.positions.tolist() == sorted(expected)
        got = dict(zip(found.positions.tolist(), found.embeddings.tolist(), strict=True))
        assert got == expected


def test_a_removed_request_leaves_nothing() -> None:
    history = EmbeddedHistory(2)
    history.put(1, rows_at([3]))
    history.remove(1)
    history.remove(0)
    window = (np.array([0], dtype=np.int32), np.array([0, 9], dtype=np.int32))
    assert history.gather(np.array([1]), *window) is None


PROMPT = [1, 5, 8, 0, 0, 2, 6, 7]


def asked(rows: Any, family: str = "bagpiper", prompt: Any = PROMPT) -> None:
    request = SpeechRequest(prompt_ids=list(prompt), embedded=rows, output="text")
    resolve(request, FAMILIES[family], None)


def test_what_fits_is_taken() -> None:
    asked(rows_at([3, 4]))


@pytest.mark.parametrize(
    "rows",
    [
        rows_at([]),
        rows_at([4, 3]),
        rows_at([3, 3]),
        rows_at([-1, 3]),
        rows_at([3, 8]),
        rows_at([2, 3]),
        EmbeddedRows(np.array([3, 4], np.int32), np.zeros((1, 2), np.float32)),
        EmbeddedRows(np.array([3, 4], np.int32), np.zeros(2, np.float32)),
    ],
)
def test_what_does_not_fit_the_prompt_is_refused(rows: EmbeddedRows) -> None:
    with pytest.raises(RequestError) as error:
        asked(rows)
    assert error.value.param == "embedded"


NOT_A_NUMBER = np.full((2, 2), np.nan, np.float32)


@pytest.mark.parametrize(
    "rows",
    [
        EmbeddedRows(np.array([3.0, 4.0]), np.zeros((2, 2), np.float32)),
        EmbeddedRows(np.array([3, 4], np.int32), np.zeros((2, 2), int)),
        EmbeddedRows(np.array([3, 4], np.int32), NOT_A_NUMBER),
        EmbeddedRows(np.array([3, 4], np.int32), np.full((2, 2), 1e300)),
    ],
)
def test_what_is_no_embedding_is_refused(rows: EmbeddedRows) -> None:
    with pytest.raises(RequestError) as error:
        asked(rows)
    assert error.value.param == "embedded"


def test_rows_of_other_types_reach_the_engine_as_its_own() -> None:
    rows = rows_at([3, 4])
    wide = np.repeat(rows.embeddings.astype(np.float64), 2, axis=1)[:, ::2]
    other = EmbeddedRows(rows.positions.astype(np.int64), wide)  # type: ignore[arg-type]
    request = SpeechRequest(prompt_ids=PROMPT, embedded=other, output="text")
    resolved = resolve(request, FAMILIES["bagpiper"], None).embedded
    assert resolved is not None
    assert resolved.pack() == rows.pack()


def test_a_family_of_codes_takes_no_embeddings() -> None:
    with pytest.raises(RequestError, match="opuslm takes no embeddings"):
        asked(rows_at([3]), "opuslm", [5, 80, 0, 0])
