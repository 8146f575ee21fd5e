"""Noise is a fixed function of (seed, step, stream, id), and looks like none."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine_adapter.noise import gumbel
from engine_adapter.request import MAX_SEED

Counter = tuple[int, int, int, int]
Word = int | Tensor

# Whoever changes one of these changes what every seed stands for.
GOLDEN: dict[Counter, float] = {
    (0, 0, 0, 0): 1.419769048690796,
    (1, 0, 0, 0): 1.6994186639785767,
    (0, 1, 0, 0): 0.2259151190519333,
    (0, 0, 1, 0): 0.053333550691604614,
    (0, 0, 0, 1): 0.20544150471687317,
    (2**31, 7, 3, 152193): -1.1780680418014526,
    (2**32, 7, 3, 152193): 0.41744276881217957,
    (MAX_SEED, 4095, 8, 160391): -0.21122512221336365,
    (123456789, 100, 0, 5): 1.6663671931948853,
}

counters = st.tuples(
    st.integers(0, MAX_SEED),
    st.integers(0, 2**20),
    st.integers(0, 31),
    st.integers(0, 2**18),
)


def noise(seed: Word, step: Word, stream: Word, ids: Word) -> Tensor:
    return gumbel(*(torch.as_tensor(word) for word in (seed, step, stream, ids)))


def scalar(counter: Counter) -> float:
    """The definition in whole Python numbers."""

    def mix(x: int) -> int:
        x = ((x ^ x >> 16) * 0x7FEB352D) % 2**32
        x = ((x ^ x >> 15) * 0x846CA68B) % 2**32
        return x ^ x >> 16

    seed, *words = counter
    state = mix(seed % 2**32 ^ mix(seed // 2**32 ^ 0x9E3779B9))
    for word, constant in zip(words, (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35), strict=True):
        state = mix(state ^ (word * constant + 1) % 2**32)
    return -math.log(-math.log((state // 2**9 + 0.5) / 2**23))


@pytest.mark.parametrize("counter", GOLDEN)
def test_golden_values(counter: Counter) -> None:
    assert noise(*counter).item() == pytest.approx(GOLDEN[counter], rel=1e-6)


@given(counters)
def test_it_is_the_definition_in_exact_arithmetic(counter: Counter) -> None:
    assert noise(*counter).item() == pytest.approx(scalar(counter), rel=1e-4, abs=1e-5)


@given(st.lists(counters, min_size=1, max_size=6))
def test_a_value_does_not_depend_on_what_is_computed_with_it(batch: list[Counter]) -> None:
    together = gumbel(*(torch.tensor(words) for words in zip(*batch, strict=True)))
    assert together.tolist() == [noise(*counter).item() for counter in batch]


def test_it_is_finite_float32_for_millions_of_counters() -> None:
    steps, ids = torch.arange(16)[:, None], torch.arange(2**16)
    for seed in (0, MAX_SEED):
        values = noise(seed, steps, 3, ids)
        assert values.dtype == torch.float32
        # -log(-log(u)) for u from 2**-24 to 1 - 2**-24.
        assert -2.82 < values.min().item() < -2.5
        assert 13 < values.max().item() < 16.7


def test_it_is_distributed_as_standard_gumbel() -> None:
    values = noise(7, torch.arange(100)[:, None], 0, torch.arange(2000)).double()
    assert values.mean().item() == pytest.approx(0.5772, abs=0.01)
    assert values.var().item() == pytest.approx(math.pi**2 / 6, abs=0.03)
    for quantile in (0.1, 0.5, 0.9):
        below = (values < -math.log(-math.log(quantile))).double().mean()
        assert below.item() == pytest.approx(quantile, abs=0.005)


def test_every_word_of_the_counter_makes_other_noise() -> None:
    """Neighbouring counters, swapped words and the upper half of a seed included."""
    ids = torch.arange(1024)
    counters = [
        *((seed, 0, 0) for seed in (0, 1, 2, 3, 2**31, 2**32, 2**32 + 1, 2**62, MAX_SEED)),
        *((0, step, 0) for step in (1, 2, 3, 1000, 4095)),
        *((0, 0, stream) for stream in range(1, 9)),
        (0, 1, 2),
        (0, 2, 1),
        (1, 2, 0),
        (2, 1, 0),
    ]
    table = torch.stack([noise(*counter, ids) for counter in counters])
    correlation = torch.corrcoef(table) - torch.eye(len(table))
    assert correlation.abs().max().item() < 0.15
    assert all(len(row.unique()) > 1000 for row in table)


def test_neighbouring_ids_are_independent() -> None:
    values = noise(5, torch.arange(50)[:, None], 2, torch.arange(1001))
    pairs = torch.stack([values[:, :-1].flatten(), values[:, 1:].flatten()])
    assert torch.corrcoef(pairs)[0, 1].abs().item() < 0.02
