"""What a backbone reads: sums of embeddings, where it always finds them."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine_adapter.embedded import EmbeddedRows
from engine_adapter.families import FAMILIES
from engine_adapter.input_rows import InputRows
from engine_adapter.spec import StreamSpec
from tests.unit.engine_adapter.specs import small_spec

HIDDEN, MAX_TOKENS = 8, 12


def table_of(spec: StreamSpec) -> torch.Tensor:
    return torch.randn(spec.vocab_size, HIDDEN, generator=torch.Generator().manual_seed(0))


def rows_of(spec: StreamSpec) -> InputRows:
    rows = InputRows(spec, HIDDEN, torch.float32, MAX_TOKENS)
    rows.take_embedding(table_of(spec))
    return rows


def some_ids(spec: StreamSpec, tokens: int) -> NDArray[np.int32]:
    """Ids of the auxiliary streams, some of them 0."""
    columns = [[0, s.first_id, s.pad_id, s.end - 1] for s in spec.streams[1:]]
    rows = [[column[(t + i) % 4] for i, column in enumerate(columns)] for t in range(tokens)]
    return np.array(rows, dtype=np.int32).reshape(tokens, len(columns))


@pytest.mark.parametrize("pad_embedding", ["zero", "sum", "pad"])
def test_a_row_is_the_sum_of_its_streams(pad_embedding: Literal["zero", "sum", "pad"]) -> None:
    spec = dataclasses.replace(small_spec(), pad_embedding=pad_embedding)
    rows, table = rows_of(spec), table_of(spec)
    ids, primary = some_ids(spec, 6), torch.randn(8, HIDDEN)
    rows.put(ids, 8, None)
    padded = np.concatenate([ids, np.zeros((2, ids.shape[1]), np.int32)])
    expected = primary.clone()
    for stream, column in zip(spec.streams[1:], padded.T, strict=True):
        for row, code in enumerate(column.tolist()):
            meant = stream.pad_id if code == 0 and pad_embedding == "pad" else code
            if meant != 0 or pad_embedding != "zero":
                expected[row] += table[meant]
    torch.testing.assert_close(rows(primary), expected)


@pytest.mark.parametrize("family", ["demo", "bagpiper"])
def test_every_step_s_rows_stand_at_one_address(family: str) -> None:
    """A captured graph reads them where they stood, and nothing else tells it of new ones."""
    spec = FAMILIES[family]
    rows = InputRows(spec, HIDDEN, torch.float32, MAX_TOKENS)
    kept, addresses = [], set()
    for step, tokens in enumerate((3, 12, 1, 3)):
        given = None
        if spec.hears_embeddings and step % 2 == 0:
            given = EmbeddedRows.stretch(0, np.full((1, HIDDEN), step, dtype=np.float32))
        rows.put(np.zeros((tokens, spec.num_streams - 1), np.int32), tokens, given)
        primary = torch.full((tokens, HIDDEN), float(step))
        made = rows(primary)
        assert made.shape == primary.shape
        addresses.add(made.data_ptr())
        kept.append(primary)  # or its memory would be used again, and prove nothing
    assert len(addresses) == 1


def test_rows_that_are_given_are_read_once() -> None:
    spec = FAMILIES["bagpiper"]
    rows = InputRows(spec, HIDDEN, torch.float32, MAX_TOKENS)
    ids, primary = np.zeros((4, spec.num_streams - 1), np.int32), torch.ones(4, HIDDEN)
    rows.put(ids, 4, EmbeddedRows.stretch(1, np.full((2, HIDDEN), 7, dtype=np.float32)))
    assert rows(primary)[:, 0].tolist() == [1, 7, 7, 1]
    rows.put(ids, 4, None)
    assert rows(primary)[:, 0].tolist() == [1, 1, 1, 1]


def test_a_family_of_one_stream_reads_that_one() -> None:
    spec = small_spec(delays=(0,))
    rows, primary = rows_of(spec), torch.randn(3, HIDDEN)
    rows.put(np.zeros((3, 0), np.int32), 3, None)
    assert torch.equal(rows(primary), primary)
