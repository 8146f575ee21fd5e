"""The delay pattern: frames to rows and back, at once and as rows arrive."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_adapter.delay import Ids, StreamingDeinterleaver, deinterleave, interleave

# Any delays: without one, with gaps, falling, all the same.
delays = st.lists(st.integers(0, 6), min_size=1, max_size=5)
chunk_sizes = st.lists(st.integers(0, 7), max_size=12)


def numbered(count: int, streams: int, first: int = 100) -> Ids:
    """Rows or frames in which no value occurs twice."""
    return np.arange(first, first + count * streams, dtype=np.int32).reshape(count, streams)


def in_chunks(rows: Ids, sizes: list[int]) -> list[Ids]:
    """Pieces of these sizes, and what is left."""
    bounds = [0, *np.minimum(np.cumsum(sizes, dtype=int), len(rows)).tolist(), len(rows)]
    return [rows[a:b] for a, b in pairwise(bounds)]


def test_a_frame_stands_on_a_diagonal() -> None:
    frames = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
    assert interleave(frames, delays=(0, 1, 3), pads=(7, 8, 9)).tolist() == [
        [1, 8, 9],
        [4, 2, 9],
        [7, 5, 9],
        [7, 8, 3],
        [7, 8, 6],
    ]


@given(count=st.integers(0, 8), delays=delays, data=st.data())
def test_deinterleave_undoes_interleave(count: int, delays: list[int], data: st.DataObject) -> None:
    """Whatever the pads, even where they look like codes."""
    frames = numbered(count, len(delays))
    pads = data.draw(st.lists(st.integers(0, 140), min_size=len(delays), max_size=len(delays)))
    rows = interleave(frames, delays, pads)
    assert rows.dtype == np.int32
    assert len(rows) == (count + max(delays) if count else 0)
    assert deinterleave(rows, delays).tolist() == frames.tolist()


@given(count=st.integers(0, 8), delays=delays)
def test_interleave_puts_the_pad_of_its_stream_in_every_hole(count: int, delays: list[int]) -> None:
    pads = list(range(len(delays)))
    rows = interleave(numbered(count, len(delays)), delays, pads)
    for stream, delay in enumerate(delays):
        holes = np.delete(rows[:, stream], np.s_[delay : delay + count])
        assert (holes == pads[stream]).all()


@given(count=st.integers(0, 12), delays=delays)
def test_deinterleave_gives_the_frames_that_are_whole(count: int, delays: list[int]) -> None:
    rows = numbered(count, len(delays))
    frames = deinterleave(rows, delays)
    assert frames.shape == (max(0, count - max(delays)), len(delays))
    for t, frame in enumerate(frames):
        assert frame.tolist() == [rows[t + d, s] for s, d in enumerate(delays)]


@given(count=st.integers(0, 20), delays=delays, sizes=chunk_sizes)
def test_any_chunking_gives_the_frames_of_the_whole(
    count: int, delays: list[int], sizes: list[int]
) -> None:
    rows = numbered(count, len(delays))
    stream = StreamingDeinterleaver(delays)
    frames = [frame for piece in in_chunks(rows, sizes) for frame in stream.push(piece).tolist()]
    assert frames == deinterleave(rows, delays).tolist()


@given(count=st.integers(1, 15), delays=delays)
def test_a_frame_is_released_with_the_row_of_its_last_stream(count: int, delays: list[int]) -> None:
    stream = StreamingDeinterleaver(delays)
    for t, row in enumerate(numbered(count, len(delays))):
        frames = stream.push(row[None])
        assert len(frames) == (t >= max(delays))


@pytest.mark.parametrize("delays", [(0,), (0, 0), (0, 2, 1), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_it_keeps_no_more_than_the_longest_delay(delays: tuple[int, ...]) -> None:
    stream = StreamingDeinterleaver(delays)
    for _ in range(50):
        stream.push(numbered(40, len(delays)))
        kept = [value for value in vars(stream).values() if isinstance(value, np.ndarray)]
        assert sum(len(rows) for rows in kept) <= max(delays)
        # Not a view that keeps the memory of everything pushed with it.
        assert all(rows.base is None or len(rows.base) <= 2 * 40 for rows in kept)


def test_what_was_pushed_may_be_overwritten() -> None:
    stream = StreamingDeinterleaver((0, 1))
    rows = numbered(1, 2)
    stream.push(rows)
    rows[:] = 0
    assert stream.push(numbered(1, 2, first=200)).tolist() == [[100, 201]]
