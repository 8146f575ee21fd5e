"""Utterances joined: nothing dropped, nothing added, no click."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deployments.audio.joining import Joiner

RATE = 16_000
FADE = 80  # samples of 5 ms


def join(
    utterances: list[NDArray[np.int16]], pause_seconds: float, cuts: list[int] | None = None
) -> NDArray[np.int16]:
    """Every utterance cut at the given places."""
    joiner = Joiner(RATE)
    joined = b""
    for number, utterance in enumerate(utterances):
        if number:
            joined += joiner.end_utterance(pause_seconds)
        places = sorted(min(cut, len(utterance)) for cut in cuts or [])
        for a, b in itertools.pairwise([0, *places, len(utterance)]):
            joined += joiner.piece(utterance[a:b].tobytes())
    return np.frombuffer(joined + joiner.finish(), "<i2")


def loud(samples: int) -> NDArray[np.int16]:
    return np.full(samples, 20_000, "<i2")


@settings(deadline=None)
@given(samples=st.integers(0, 500), cuts=st.lists(st.integers(0, 500), max_size=6))
def test_a_single_utterance_begins_and_ends_in_silence(samples: int, cuts: list[int]) -> None:
    utterance = np.random.default_rng(3).integers(-(2**15), 2**15, samples).astype("<i2")
    heard = join([utterance], 0.2, cuts)
    assert len(heard) == samples
    assert not heard[:1].any()
    assert not heard[-1:].any()
    np.testing.assert_array_equal(heard[FADE:-FADE], utterance[FADE:-FADE])


def test_what_lies_between_the_fades_is_not_touched() -> None:
    joined = join([loud(1_000), loud(600)], 0.1)
    pause = RATE // 10
    np.testing.assert_array_equal(joined[FADE : 1_000 - FADE], loud(1_000 - 2 * FADE))
    assert not joined[1_000 : 1_000 + pause].any()
    np.testing.assert_array_equal(joined[1_000 + pause + FADE : -FADE], loud(600 - 2 * FADE))


@pytest.mark.parametrize("pause_seconds", [0.0, 0.1])
@pytest.mark.parametrize("length", [1, 3, 50, 79, 80, 81, 500])
def test_there_is_no_step_at_a_joint(pause_seconds: float, length: int) -> None:
    outer = loud(400)
    joined = join([outer, loud(length), outer], pause_seconds).astype(int)
    # 20000 down to 0 along half a cosine of 80 samples: nowhere steeper than pi / 2 * 250. What
    # is too short for two whole fades falls more steeply, from where its rise has come to.
    steepest = np.abs(np.diff(joined)).max()
    assert steepest <= (400 if length >= 2 * FADE or length < FADE // 2 else 1_600)


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=5),
    pause_samples=st.integers(0, 400),
)
def test_the_length_is_that_of_all_utterances_and_pauses(
    lengths: list[int], pause_samples: int
) -> None:
    joined = join([loud(length) for length in lengths], pause_samples / RATE)
    assert len(joined) == sum(lengths) + (len(lengths) - 1) * pause_samples


@settings(deadline=None)
@given(
    cuts=st.lists(st.integers(0, 500), max_size=12), lengths=st.tuples(*[st.integers(0, 500)] * 3)
)
def test_the_cuts_do_not_matter(cuts: list[int], lengths: tuple[int, ...]) -> None:
    random = np.random.default_rng(5)
    utterances = [random.integers(-(2**15), 2**15, length).astype("<i2") for length in lengths]
    np.testing.assert_array_equal(join(utterances, 0.01, cuts), join(utterances, 0.01))


def test_no_more_than_a_fade_is_held_back() -> None:
    joiner = Joiner(RATE)
    given_back = fed = 0
    for _ in range(50):
        given_back += len(joiner.piece(loud(33).tobytes())) // 2
        fed += 33
        assert fed - given_back <= FADE
    assert len(joiner.end_utterance(0.1)) // 2 == fed - given_back + RATE // 10
