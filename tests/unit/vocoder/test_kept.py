"""What is remembered of streams comes back as it was, whoever they were in a batch with."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from vocoder_service.kept import stacked, unstacked
from vocoder_service.streaming import State

FORMS = st.recursive(
    st.tuples(
        st.sampled_from([torch.float32, torch.bfloat16, torch.int64]),
        st.lists(st.integers(0, 4), max_size=3),
    ),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


def state_of(form: object, batch: int, generator: torch.Generator) -> State:
    if isinstance(form, tuple):
        dtype, shape = form
        # As what is cut off the end of a signal: its memory is not its own.
        signal = torch.randint(-9, 9, (batch + 2, *shape), generator=generator)
        return signal.to(dtype)[1:-1]
    assert isinstance(form, list)
    return tuple(state_of(part, batch, generator) for part in form)


def rows_of(state: State, rows: list[int]) -> State:
    if isinstance(state, torch.Tensor):
        return state[rows]
    return tuple(rows_of(part, rows) for part in state)


def same(one: State, other: State) -> bool:
    if isinstance(one, torch.Tensor):
        assert isinstance(other, torch.Tensor)
        return one.dtype == other.dtype and torch.equal(one, other)
    return len(one) == len(other) and all(map(same, one, other))


@given(form=FORMS, batch=st.integers(1, 4), seed=st.integers(0, 99), data=st.data())
def test_any_streams_make_a_batch_again(
    form: object, batch: int, seed: int, data: st.DataObject
) -> None:
    state = state_of(form, batch, torch.Generator().manual_seed(seed))
    kept = unstacked(state, batch)
    rows = data.draw(st.lists(st.integers(0, batch - 1), min_size=1, max_size=5))
    assert same(stacked([kept[row] for row in rows]), rows_of(state, rows))


def test_a_stream_keeps_one_piece_of_memory_of_its_own() -> None:
    """Of each type of numbers: not a copy for each tensor, and nothing of the batch's."""
    state = (torch.ones(3, 2, 5), (torch.ones(3, 0, 4), torch.zeros(3, dtype=torch.int64)))
    for kept in unstacked(state, 3):
        assert [len(values) for values in kept.values.values()] == [10, 1]
        assert kept.bytes == 10 * 4 + 8
