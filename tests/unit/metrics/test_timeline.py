"""Gaps, underrun, real-time factor and time per row, from the times at which things come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_voice.figures import Playback
from deployments.metrics.timeline import AudioTimes, RowTimes

PIECES = st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 5)), min_size=1, max_size=20)


def heard(*pieces: tuple[float, float]) -> AudioTimes:
    """
    Args:
        pieces: seconds of audio, and when it came.
    """
    times = AudioTimes()
    for seconds, at in pieces:
        times.add(seconds, at)
    return times


def test_a_stream_that_keeps_up_never_stands_still() -> None:
    times = heard((0.5, 10.0), (0.5, 10.25), (1.0, 10.75))
    assert times.seconds == 2
    assert times.gaps == [0.25, 0.5]
    assert times.underrun == 0
    assert times.real_time_factor(began=9.75) == 0.5


def test_a_piece_that_is_late_makes_the_player_stand_still() -> None:
    times = heard((0.5, 1.0), (0.5, 2.0), (0.5, 2.5))
    assert times.underrun == 0.5  # had 0.5 s to play in 1 s


def test_a_player_that_stood_still_is_behind_from_then_on_and_the_longest_lag_counts() -> None:
    times = heard((0.5, 1.0), (0.5, 2.0), (0.5, 3.0))
    assert times.underrun == 1.0


def test_nothing_follows_from_no_audio() -> None:
    times = heard()
    assert times.real_time_factor(began=0) is None
    assert (times.first, times.seconds, times.gaps, times.underrun) == (None, 0, [], 0)


@given(PIECES)
def test_the_service_measures_as_the_benchmark_does(steps: list[tuple[float, float]]) -> None:
    arrivals, at = [], 0.25
    for wait, _ in steps:
        at += wait
        arrivals.append(at)
    pieces = [seconds for _, seconds in steps]
    theirs = Playback(tuple(arrivals), tuple(pieces))
    ours = heard(*zip(pieces, arrivals, strict=True))
    assert ours.underrun == pytest.approx(theirs.underrun)
    assert ours.real_time_factor(began=0) == pytest.approx(theirs.real_time_factor)
    assert ours.first == theirs.first_audio
    assert sum(ours.gaps) == pytest.approx(arrivals[-1] - arrivals[0])


def test_time_per_row_leaves_out_what_came_with_the_first() -> None:
    rows = RowTimes()
    rows.add(3, 1.0)
    assert (rows.first, rows.per_row) == (1.0, None)
    rows.add(1, 1.5)
    rows.add(4, 2.0)
    assert rows.per_row == 0.2


def test_no_rows_have_no_time() -> None:
    assert (RowTimes().first, RowTimes().per_row) == (None, None)
