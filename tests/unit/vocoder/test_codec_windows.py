"""However frames arrive and windows grow, the joined windows are the one-shot decode."""

import tracemalloc
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vocoder_service.frames import CodecShape, Frames
from vocoder_service.windows import StreamWindows, Window, WindowSchedule


@dataclass(frozen=True)
class ToyCodec:
    """A codec in exact integer arithmetic that hears all of its context, and its edges.

    Frame f sounds like the sum of its neighbours' codes, each weighted by its distance; a
    neighbour beyond the edge counts as nothing, which differs from every code, or, at the start,
    as its mirror image.
    """

    left_context: int
    right_context: int
    hop_length: int
    missing_samples: int
    num_codebooks: int = 2
    codebook_size: int = 10
    mirrors: bool = False

    @property
    def first_frames(self) -> int:
        return max(self.right_context, self.left_context if self.mirrors else 0) + 1

    def num_samples(self, frames: int) -> int:
        return frames * self.hop_length - self.missing_samples

    def decode(self, codes: Frames) -> NDArray[np.int64]:
        values = codes @ [11, 1] + 1
        padded = np.pad(values, (self.left_context, self.right_context))
        if self.mirrors:
            image = padded[self.left_context + 1 :][: self.left_context]
            padded[: self.left_context] = np.pad(image, (0, self.left_context - len(image)))[::-1]
        span = self.left_context + 1 + self.right_context
        weights = 1000 ** np.arange(span) % 999_983
        heard = np.lib.stride_tricks.sliding_window_view(padded, span) @ weights
        samples = (heard[:, None] * np.arange(1, self.hop_length + 1)).reshape(-1)
        return samples[: self.num_samples(len(codes))]


@st.composite
def toy_codecs(draw: st.DrawFn) -> ToyCodec:
    hop = draw(st.integers(1, 5))
    right = draw(st.integers(0, 4))
    missing = draw(st.integers(0, hop - 1)) if right else 0
    return ToyCodec(draw(st.integers(0, 4)), right, hop, missing, mirrors=draw(st.booleans()))


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


def body_frames(codec: ToyCodec, window: Window) -> int:
    samples = codec.num_samples(len(window.codes)) - window.trim_left - window.trim_right
    return round(samples / codec.hop_length)


def sound(codec: ToyCodec, windows: list[Window]) -> list[int]:
    samples: list[int] = []
    for window in windows:
        decoded = codec.decode(window.codes)
        samples += decoded[window.trim_left : len(decoded) - window.trim_right].tolist()
    return samples


@unhurried
@given(codec=toy_codecs(), maximum=maxima, chunks=chunk_sizes)
def test_joined_windows_are_the_one_shot_decode(
    codec: ToyCodec, maximum: int, chunks: list[int]
) -> None:
    codes = random_codes(sum(chunks), codec)
    stream = StreamWindows(codec, maximum)

    windows = push_in_chunks(stream, codes, chunks) + stream.finish()

    one_shot = codec.decode(codes) if len(codes) else np.empty(0)
    assert sound(codec, windows) == one_shot.tolist()


@unhurried
@given(codec=toy_codecs(), maximum=maxima, chunks=chunk_sizes)
def test_every_push_decodes_what_can_be_decoded(
    codec: ToyCodec, maximum: int, chunks: list[int]
) -> None:
    stream = StreamWindows(codec, maximum)
    arrived = heard = 0
    for chunk in chunks:
        bodies = [body_frames(codec, w) for w in stream.push(random_codes(chunk, codec))]
        arrived, heard = arrived + chunk, heard + sum(bodies)
        assert heard == (arrived - codec.right_context if arrived >= codec.first_frames else 0)
        assert all(body == maximum for body in bodies[:-1])
        assert all(1 <= body <= maximum for body in bodies)


@unhurried
@given(codec=toy_codecs(), maximum=maxima, chunks=chunk_sizes, last=st.integers(0, 20))
def test_the_last_frames_share_one_window(
    codec: ToyCodec, maximum: int, chunks: list[int], last: int
) -> None:
    codes = random_codes(sum(chunks) + last, codec)
    stream = StreamWindows(codec, maximum)
    windows = push_in_chunks(stream, codes, chunks)
    end = stream.finish(codes[sum(chunks) :])
    assert len(end) <= 1
    one_shot = codec.decode(codes) if len(codes) else np.empty(0)
    assert sound(codec, windows + end) == one_shot.tolist()


@unhurried
@given(codec=toy_codecs(), maximum=maxima, chunks=chunk_sizes)
def test_frames_that_no_window_needs_are_dropped(
    codec: ToyCodec, maximum: int, chunks: list[int]
) -> None:
    stream = StreamWindows(codec, maximum)
    for chunk in chunks:
        stream.push(random_codes(chunk, codec))
        assert stream.kept_frames < codec.left_context + codec.right_context + 1
    stream.finish()
    assert stream.kept_frames == 0


def test_a_huge_push_leaves_no_memory_behind() -> None:
    codec = ToyCodec(left_context=4, right_context=4, hop_length=2, missing_samples=0)
    stream = StreamWindows(codec, 8)
    codes = random_codes(100_000, codec)

    tracemalloc.start()
    stream.push(codes)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < codes.nbytes / 100


@unhurried
@given(codec=toy_codecs(), maximum=maxima, chunks=chunk_sizes)
def test_only_the_outer_windows_have_the_edges_of_the_stream(
    codec: ToyCodec, maximum: int, chunks: list[int]
) -> None:
    stream = StreamWindows(codec, maximum)
    windows = push_in_chunks(stream, random_codes(sum(chunks), codec), chunks)

    assert not any(window.at_end for window in windows)
    assert all(window.at_start for window in windows[:1])
    for window in windows:
        full = window.trim_left == codec.left_context * codec.hop_length
        assert window.at_start or full
    assert all(window.at_end for window in stream.finish())


def test_a_frame_is_decoded_as_soon_as_its_right_context_is_there() -> None:
    codec = ToyCodec(left_context=2, right_context=3, hop_length=4, missing_samples=1)
    stream = StreamWindows(codec, 5)

    assert stream.push(random_codes(3, codec)) == []
    (window,) = stream.push(random_codes(5, codec))

    assert len(window.codes) == 8
    assert (window.trim_left, window.trim_right) == (0, 3 * 4 - 1)


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
    codec = ToyCodec(2, 2, 4, 1)
    assert StreamWindows(codec, 64).finish() == []


def test_a_finished_stream_takes_nothing_more() -> None:
    codec = ToyCodec(2, 2, 4, 1)
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
    codec = ToyCodec(1, 1, 3, 1)
    stream = StreamWindows(codec, 2)
    codes = random_codes(9, codec)
    windows = stream.push(codes[:4])

    with pytest.raises(ValueError, match=complaint):
        stream.push(frames)

    windows += stream.push(codes[4:]) + stream.finish()
    assert sound(codec, windows) == codec.decode(codes).tolist()


def test_the_callers_array_may_change_after_a_push() -> None:
    codec = ToyCodec(1, 1, 3, 1)
    codes = random_codes(5, codec)
    buffer = codes.copy()
    stream = StreamWindows(codec, 8)

    windows = stream.push(buffer)
    buffer[:] = 0

    assert sound(codec, windows + stream.finish()) == codec.decode(codes).tolist()
