"""A draw is a function of the row's own logits, parameters and counter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from engine_adapter.request import MAX_SEED
from engine_adapter.sampling import (
    SamplingBatch,
    SamplingTable,
    kth_largest,
    largest_by_key,
    sample,
)
from engine_adapter.sampling_defaults import SamplingDefaults
from tests.unit.engine_adapter.draw_by_hand import CLOSE, Row, draw_by_hand


def batch(rows: Sequence[Row]) -> SamplingBatch:
    """As the table gives it."""
    table = SamplingTable(len(rows))
    for slot, row in enumerate(rows):
        table.put(slot, SamplingDefaults(row.temperature, row.top_k, row.top_p), row.seed)
    return table.batch(np.arange(len(rows)), np.array([row.step for row in rows], np.int32))


def some_logits(rows: int, streams: int, width: int, seed: int, masked: float = 0.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn((rows, streams, width), generator=generator) * 3
    drop = torch.rand(logits.shape, generator=generator) < masked
    drop[..., 0] = False
    return logits.masked_fill(drop, float("-inf"))


def some_ids(streams: int, width: int) -> Tensor:
    """Different ids on every stream, in no order."""
    ids = torch.arange(100, 100 + streams * width).reshape(streams, width)
    return ids.flip(-1) * 7


rows = st.builds(
    Row,
    temperature=st.sampled_from([0.0, 0.3, 0.8, 1.0, 2.0]),
    top_k=st.integers(0, 14),
    top_p=st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0]),
    seed=st.integers(0, MAX_SEED),
    step=st.integers(0, 5000),
)


@given(
    batch_rows=st.lists(rows, min_size=1, max_size=5),
    streams=st.integers(1, 3),
    width=st.integers(1, 12),
    first_stream=st.integers(0, 5),
    masked=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 999),
)
def test_every_row_and_stream_is_drawn_as_defined(
    batch_rows: list[Row], streams: int, width: int, first_stream: int, masked: float, seed: int
) -> None:
    logits, ids = (
        some_logits(len(batch_rows), streams, width, seed, masked),
        some_ids(streams, width),
    )
    drawn = sample(logits, ids, batch(batch_rows), first_stream)
    assert drawn.shape == (len(batch_rows), streams)
    assert drawn.dtype == torch.int64
    for i, row in enumerate(batch_rows):
        for s in range(streams):
            expected = draw_by_hand(logits[i, s], ids[s], row, first_stream + s)
            assume(expected.margin > CLOSE)
            assert drawn[i, s].item() == expected.id


@given(
    batch_rows=st.lists(rows, min_size=2, max_size=8),
    width=st.integers(1, 40),
    seed=st.integers(0, 999),
)
def test_a_row_does_not_depend_on_the_other_rows(
    batch_rows: list[Row], width: int, seed: int
) -> None:
    logits, ids = some_logits(len(batch_rows), 2, width, seed, masked=0.2), some_ids(2, width)
    together = sample(logits, ids, batch(batch_rows))
    for i, row in enumerate(batch_rows):
        alone = sample(logits[i : i + 1], ids, batch([row]))
        assert together[i].tolist() == alone[0].tolist()


@pytest.mark.parametrize("row", [Row(0.0), Row(1.0, top_k=3), Row(1.0, top_k=3, top_p=0.5)])
def test_equal_logits_do_not_make_a_row_depend_on_the_others(row: Row) -> None:
    """Half-precision heads give many equal logits, at the k-th largest too."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(0, 4, (60, 1, 40), generator=generator).float()
    ids = some_ids(1, 40)
    for tied in logits:
        alone = sample(tied[None], ids, batch([row]))
        other = torch.randn((1, 1, 40), generator=generator)
        together = sample(torch.cat([tied[None], other]), ids, batch([row, Row(top_k=17)]))
        assert together[0].tolist() == alone[0].tolist()


@given(
    values=st.lists(
        st.sampled_from([-np.inf, -1e30, -2.0, -1.5, -0.0, 0.0, 1e-40, 1.5, 2.0, 1e30]),
        min_size=1,
        max_size=20,
    ),
    data=st.data(),
)
def test_the_largest_by_key_come_in_order_of_value_and_then_of_place(
    values: list[float], data: st.DataObject
) -> None:
    logits = torch.tensor(values)[None, None]
    kept = data.draw(st.integers(1, len(values)))
    expected = sorted(range(len(values)), key=lambda place: (-values[place], place))[:kept]
    largest, places = largest_by_key(logits, kept)
    assert places.flatten().tolist() == expected
    assert largest.tolist() == logits[0, 0, expected].expand(1, 1, kept).tolist()


@pytest.mark.parametrize("kept", [1, 7, 40])
def test_the_largest_by_key_are_those_of_a_cpu(kept: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(-4, 4, (50, 2, 40), generator=generator).float()
    for ours, theirs in zip(
        largest_by_key(logits, kept), logits.sort(dim=-1, descending=True, stable=True), strict=True
    ):
        assert torch.equal(ours, theirs[..., :kept])


@given(width=st.integers(1, 1_100), kept=st.integers(1, 60), seed=st.integers(0, 99))
def test_the_kth_largest_is_that_of_the_whole_row(width: int, kept: int, seed: int) -> None:
    """Whether or not the row is sorted in blocks, with equal and masked values among them."""
    kept = min(kept, width)
    values = np.random.default_rng(seed).integers(-300, 300, (2, 3, width)).astype(np.float32)
    values[values < -200] = -np.inf
    assert np.array_equal(kth_largest(values, kept), np.sort(values)[..., -kept, None])


def test_parameters_may_be_there_already() -> None:
    """Of rows with and without a top-k, which are drawn apart."""
    logits, ids = some_logits(3, 2, 12, seed=3), some_ids(2, 12)
    rows = batch([Row(1.0, 0, 0.9, 1), Row(0.7, 3, 1.0, 2), Row(2.0, 5, 0.5, 3, 8)])
    there = [torch.from_numpy(array) for array in rows.arrays]
    assert torch.equal(sample(logits, ids, rows, 1, there), sample(logits, ids, rows, 1))


def test_inputs_are_left_alone() -> None:
    logits, ids = some_logits(2, 2, 8, seed=0), some_ids(2, 8)
    before = logits.clone(), ids.clone()
    sample(logits, ids, batch([Row(top_k=3, top_p=0.5), Row()]))
    assert torch.equal(logits, before[0])
    assert torch.equal(ids, before[1])


@given(seed=st.integers(0, 200), step=st.integers(0, 200), row=rows)
def test_a_low_temperature_is_greedy_in_the_end(seed: int, step: int, row: Row) -> None:
    logits, ids = some_logits(1, 3, 12, seed), some_ids(3, 12)
    gap = logits.topk(2, dim=-1).values.diff(dim=-1).abs().min().item()
    temperature = gap / 20  # the noise spans less than 20
    greedy = sample(logits, ids, batch([Row(0.0)]))
    cold = sample(logits, ids, batch([Row(temperature, row.top_k, row.top_p, row.seed, step)]))
    assert cold.tolist() == greedy.tolist()


@pytest.mark.parametrize("top_k", [0, 5])
@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 1e-39, 1e-46])
def test_the_lowest_temperatures_are_greedy(temperature: float, top_k: int) -> None:
    """Also where float32 can hold neither them nor what they make of a logit."""
    logits, ids = some_logits(8, 2, 12, seed=4), some_ids(2, 12)
    logits[4:] -= 20
    cold = sample(logits, ids, batch([Row(temperature, top_k)] * 8))
    assert cold.tolist() == sample(logits, ids, batch([Row(0.0)] * 8)).tolist()


@pytest.mark.parametrize("top_p", [1e-7, 1e-30, 1e-50])
def test_the_lowest_top_p_keeps_the_first_candidate(top_p: float) -> None:
    logits, ids = some_logits(8, 2, 12, seed=5), some_ids(2, 12)
    drawn = sample(logits, ids, batch([Row(1.0, 0, top_p, seed) for seed in range(8)]))
    assert drawn.tolist() == sample(logits, ids, batch([Row(0.0)] * 8)).tolist()


@given(row=rows, seed=st.integers(0, 99), kept=st.integers(1, 9))
def test_masked_candidates_never_win(row: Row, seed: int, kept: int) -> None:
    logits, ids = some_logits(1, 1, 9, seed), some_ids(1, 9)
    logits[..., kept:] = float("-inf")
    assert sample(logits, ids, batch([row])).item() in ids[0, :kept].tolist()


PROBABILITIES = np.array([0.5, 0.25, 0.15, 0.1])
N = 20_000


def chi_square(drawn: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    counts = np.bincount(drawn, minlength=len(PROBABILITIES))[expected > 0]
    assert counts.sum() == len(drawn), "a candidate without probability was drawn"
    wanted = expected[expected > 0] * len(drawn)
    return float(((counts - wanted) ** 2 / wanted).sum())


@pytest.mark.parametrize("varied", ["seed", "step", "stream"])
@pytest.mark.parametrize(
    ("row", "power", "kept"),
    [
        (Row(), 1.0, 4),
        (Row(0.5), 2.0, 4),
        (Row(2.0), 0.5, 4),
        (Row(top_k=2), 1.0, 2),
        (Row(top_p=0.8), 1.0, 3),
    ],
)
def test_draws_have_the_probabilities_of_the_softmax(
    varied: str, row: Row, power: float, kept: int
) -> None:
    """Whichever word of the counter runs; the seeds are fixed, so this cannot fluctuate."""
    logits = torch.tensor(np.log(PROBABILITIES), dtype=torch.float32)
    if varied == "stream":
        drawn = sample(logits.expand(1, N, 4), torch.arange(4).expand(N, 4), batch([row]))
    else:
        values = batch([row]).take(np.zeros(N, dtype=np.int64))
        getattr(values, varied)[:] = np.arange(N)
        drawn = sample(logits.expand(N, 1, 4), torch.arange(4)[None], values)
    expected = PROBABILITIES**power * (np.arange(4) < kept)
    assert chi_square(drawn.flatten().numpy(), expected / expected.sum()) < 16.3  # 99.9 %


def test_streams_are_drawn_independently() -> None:
    logits = torch.tensor(np.log(PROBABILITIES), dtype=torch.float32).expand(N, 2, 4)
    values = batch([Row()]).take(np.zeros(N, dtype=np.int64))
    values.seed[:] = np.arange(N)
    first, second = sample(logits, torch.arange(4).expand(2, 4), values).numpy().T
    joint = np.histogram2d(first, second, bins=4)[0]
    wanted = np.outer(PROBABILITIES, PROBABILITIES) * N
    assert ((joint - wanted) ** 2 / wanted).sum() < 37.7  # 15 degrees of freedom, 99.9 %


def test_the_table_keeps_its_slots_when_it_grows() -> None:
    table = SamplingTable(2)
    table.put(0, SamplingDefaults(0.5, 3, 0.25), seed=MAX_SEED)
    table.put(1, SamplingDefaults(0.0, 9, 0.5), seed=4)
    table.grow(5)
    table.put(4, SamplingDefaults(2.0), seed=5)
    values = table.batch(np.array([4, 1, 0]), np.array([7, 8, 9], dtype=np.int32))
    assert values.temperature.tolist() == [2.0, 1.0, 0.5]
    assert values.top_k.tolist() == [0, 1, 3]  # greedy is the first candidate alone
    assert values.top_p.tolist() == [1.0, 1.0, 0.25]
    assert values.seed.tolist() == [5, 4, MAX_SEED]
    assert values.step.tolist() == [7, 8, 9]
