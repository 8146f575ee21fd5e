"""However frames arrive, each is in one window, in order, as soon as it can be decoded."""

import tracemalloc
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vocoder_service.frames import CodecShape, Frames
from vocoder_service.schedule import WindowSchedule
from vocoder_service.windows import StreamWindows, Window


@dataclass(frozen=True)
class Shape:
    """What cutting needs of a codec."""

    right_context: int
    first_frames: int
    num_codebooks: int = 2
    codebook_size: int = 10
    hop_length: int = 4

    def num_samples(self, frames: int) -> int:
        return frames * self.hop_length


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    right = draw(st.integers(0, 4))
    return Shape(right, draw(st.integers(right + 1, 9)))


unhurried = settings(deadline=None)
maxima = st.integers(1, 12)
chunk_sizes = st.lists(st.integers(0, 15), max_size=12)


def random_codes(frames: int, codec: CodecShape) -> Frames:
    rng = np.random.default_rng(frames)
    return rng.integers(codec.codebook_size, size=(frames, codec.num_codebooks))


def push_in_chunks(stream: StreamWindows, codes: Frames, chunks: list[int]) -> list[Window]:
    windows = []
    for begin, end in pairwise(np.cumsum([0, *chunks])):
        windows += stream.push(codes[begin:end])
    return windows


@unhurried
@given(codec=shapes(), maximum=maxima, chunks=chunk_sizes, last=st.integers(0, 20))
def test_every_frame_is_in_one_window(
    codec: Shape, maximum: int, chunks: list[int], last: int
) -> None:
    codes = random_codes(sum(chunks) + last, codec)
    stream = StreamWindows(codec, maximum)

    windows = push_in_chunks(stream, codes, chunks) + stream.finish(codes[sum(chunks) :])

    joined = np.concatenate([codes[:0], *(window.codes for window in windows)])
    np.testing.assert_array_equal(joined, codes)
    assert [window.begin for window in windows] == [0, *(window.end for window in windows)][:-1]
    assert len({window.memory for window in windows}) <= 1


@unhurried
@given(codec=shapes(), maximum=maxima, chunks=chunk_sizes)
def test_nothing_waits_but_for_the_decoder_to_begin(
    codec: Shape, maximum: int, chunks: list[int]
) -> None:
    stream = StreamWindows(codec, maximum)
    arrived = cut = 0
    for chunk in chunks:
        sizes = [len(window.codes) for window in stream.push(random_codes(chunk, codec))]
        begins = cut == 0
        arrived, cut = arrived + chunk, cut + sum(sizes)
        assert cut == (arrived if arrived >= codec.first_frames else 0)
        assert len(stream._kept) == arrived - cut
        if begins and sizes:
            assert min(arrived, max(codec.first_frames, maximum)) == sizes.pop(0)
        assert all(size == maximum for size in sizes[:-1])
        assert all(1 <= size <= maximum for size in sizes)


@unhurried
@given(codec=shapes(), maximum=maxima, chunks=chunk_sizes, last=st.integers(0, 20))
def test_the_end_is_one_window_if_anything_is_left_to_decode(
    codec: Shape, maximum: int, chunks: list[int], last: int
) -> None:
    stream = StreamWindows(codec, maximum)
    windows = push_in_chunks(stream, random_codes(sum(chunks), codec), chunks)
    held = len(stream._kept)
    end = stream.finish(random_codes(last, codec))

    # The samples of the last right_context frames wait for the end even if no frame does.
    assert len(end) == (held + last > 0 or (len(windows) > 0 and codec.right_context > 0))
    assert not any(window.at_end for window in windows)
    assert all(window.at_end for window in end)
    assert [window.at_start for window in windows + end] == [
        index == 0 for index in range(len(windows + end))
    ]
    assert len(stream._kept) == 0


def test_a_huge_push_leaves_no_memory_behind() -> None:
    codec = Shape(right_context=4, first_frames=5)
    stream = StreamWindows(codec, 8)
    codes = random_codes(100_000, codec)

    tracemalloc.start()
    stream.push(codes)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < codes.nbytes / 100


def test_a_stream_begins_as_soon_as_a_sample_is_determined() -> None:
    codec = Shape(right_context=3, first_frames=4)
    stream = StreamWindows(codec, 3)

    assert stream.push(random_codes(3, codec)) == []
    first, second = stream.push(random_codes(2, codec))

    assert (len(first.codes), len(second.codes)) == (4, 1)


def test_windows_grow_from_first_to_maximum() -> None:
    sizes = WindowSchedule(first=8, growth=1.5, maximum=50).sizes()
    assert [next(sizes) for _ in range(7)] == [8, 12, 18, 27, 40, 50, 50]


def test_even_a_window_of_one_frame_grows() -> None:
    sizes = WindowSchedule(first=1, growth=1.5, maximum=5).sizes()
    assert [next(sizes) for _ in range(6)] == [1, 1, 2, 3, 5, 5]


@pytest.mark.parametrize(
    ("size", "load", "used"),
    [(8, 0.0, 8), (8, 0.4, 8), (8, 0.65, 36), (40, 0.65, 40), (8, 0.9, 64), (8, 1.0, 64)],
)
def test_windows_are_larger_while_the_decoder_is_busy(size: int, load: float, used: int) -> None:
    assert WindowSchedule(first=8, growth=1.5, maximum=64).under_load(size, load) == used


@given(st.integers(1, 64), st.floats(0, 1), st.floats(0, 1))
def test_more_load_never_makes_a_window_smaller(size: int, one: float, other: float) -> None:
    schedule = WindowSchedule(first=8, growth=1.5, maximum=64)
    less, more = sorted([one, other])
    assert size <= schedule.under_load(size, less) <= schedule.under_load(size, more) <= 64


@pytest.mark.parametrize(
    ("first", "growth", "maximum"), [(0, 2, 8), (9, 2, 8), (4, 0.5, 8), (4, float("nan"), 8)]
)
def test_a_schedule_that_makes_no_sense_is_refused(first: int, growth: float, maximum: int) -> None:
    with pytest.raises(ValueError, match=r"window sizes need|must not shrink"):
        WindowSchedule(first, growth, maximum)


def test_a_stream_without_frames_has_no_windows() -> None:
    codec = Shape(2, 3)
    assert StreamWindows(codec, 64).finish() == []


def test_a_finished_stream_takes_nothing_more() -> None:
    codec = Shape(2, 3)
    stream = StreamWindows(codec, 64)
    stream.finish()

    with pytest.raises(RuntimeError, match="finished"):
        stream.push(random_codes(1, codec))
    with pytest.raises(RuntimeError, match="finished"):
        stream.finish()


@pytest.mark.parametrize(
    ("frames", "complaint"),
    [
        (np.array([[3, 4], [5, 10]]), "stream 1: code 10 of frame 1 is outside 0..9"),
        (np.array([[-1, 4]]), "stream 0: code -1 of frame 0 is outside 0..9"),
        (np.zeros((2, 3), np.int64), r"shape \[n, 2\], not \[2, 3\]"),
        (np.zeros(2, np.int64), r"shape \[n, 2\], not \[2\]"),
        (np.zeros((2, 2)), "integers, not float64"),
    ],
)
def test_wrong_frames_are_named_and_leave_the_stream_as_it_was(
    frames: NDArray[np.integer], complaint: str
) -> None:
    codec = Shape(1, 2)
    stream = StreamWindows(codec, 2)
    codes = random_codes(9, codec)
    windows = stream.push(codes[:4])

    with pytest.raises(ValueError, match=complaint):
        stream.push(frames)

    windows += stream.push(codes[4:]) + stream.finish()
    np.testing.assert_array_equal(np.concatenate([w.codes for w in windows]), codes)


def test_the_callers_array_may_change_after_a_push() -> None:
    codec = Shape(1, 2)
    codes = random_codes(5, codec)
    buffer = codes.copy()
    stream = StreamWindows(codec, 8)

    windows = stream.push(buffer)
    buffer[:] = 0

    windows += stream.finish()
    np.testing.assert_array_equal(np.concatenate([w.codes for w in windows]), codes)
