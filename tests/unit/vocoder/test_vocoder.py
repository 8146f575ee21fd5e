"""Windows of many streams decoded together sound as each stream decoded alone."""

from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vocoder_service.codec import Codec
from vocoder_service.frames import Frames
from vocoder_service.streaming import State
from vocoder_service.vocoder import Pcm, Vocoder, to_int16
from vocoder_service.windows import StreamWindows, Window

MAX_WINDOW = 13
slow = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def random_codes(codec: Codec, frames: int, seed: int) -> Frames:
    rng = np.random.default_rng(seed)
    return rng.integers(codec.codebook_size, size=(frames, codec.num_codebooks))


def one_shot(codec: Codec, codes: Frames) -> Pcm:
    """The whole stream in one call of the codec."""
    audio = codec.decode(torch.from_numpy(codes.T[None].copy()))
    pcm: Pcm = to_int16(audio)[0].numpy()
    return pcm


def assert_same_sound(actual: Pcm, expected: Pcm) -> None:
    assert actual.dtype == expected.dtype == np.int16
    assert actual.shape == expected.shape
    # Convolutions of other shapes add in another order, which may tip a rounding.
    assert np.abs(actual.astype(int) - expected).max(initial=0) <= 1


class CountingCodec:
    """Passes calls on and notes the shape of each."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.shapes: list[tuple[int, ...]] = []

    def advance(
        self, codes: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        self.shapes.append(tuple(codes.shape))
        return self._codec.advance(codes, before, last)

    def __getattr__(self, name: str) -> object:
        return getattr(self._codec, name)


@slow
@given(lengths=st.lists(st.integers(0, 60), min_size=1, max_size=6), random=st.randoms())
def test_streams_pushed_at_random_equal_their_one_shot_decodes(
    codec: Codec, lengths: list[int], random: Random
) -> None:
    vocoder = Vocoder(codec)
    codes = [random_codes(codec, length, seed) for seed, length in enumerate(lengths)]
    streams = [StreamWindows(codec, MAX_WINDOW) for _ in codes]
    pushed = [0] * len(codes)
    heard: list[list[Pcm]] = [[] for _ in codes]

    while not all(stream.finished for stream in streams):
        batch: list[tuple[int, Window]] = []
        for index, stream in enumerate(streams):
            chunk = random.randint(0, 25)
            windows: list[Window] = []
            if pushed[index] < len(codes[index]):
                windows = stream.push(codes[index][pushed[index] : pushed[index] + chunk])
                pushed[index] += chunk
            elif not stream.finished:
                windows = stream.finish()
            batch += [(index, window) for window in windows]
        parts = vocoder.decode([window for _, window in batch])
        for (index, _), part in zip(batch, parts, strict=True):
            heard[index].append(part)

    for parts, stream_codes in zip(heard, codes, strict=True):
        expected = one_shot(codec, stream_codes) if len(stream_codes) else np.empty(0, np.int16)
        assert_same_sound(np.concatenate([np.empty(0, np.int16), *parts]), expected)


def windows_of(codec: Codec, frames: int, seed: int) -> list[Window]:
    stream = StreamWindows(codec, MAX_WINDOW)
    return stream.push(random_codes(codec, frames, seed)) + stream.finish()


def test_a_stream_does_not_hear_the_rest_of_its_batch(codec: Codec) -> None:
    lengths = [5, 12, 40, 70, 40]
    streams = [windows_of(codec, length, seed) for seed, length in enumerate(lengths)]
    shuffled = [index for index, own in enumerate(streams) for _ in own]
    Random(0).shuffle(shuffled)
    remaining = [iter(own) for own in streams]

    parts = Vocoder(codec).decode([next(remaining[index]) for index in shuffled])

    for index, length in enumerate(lengths):
        own = [part for part, owner in zip(parts, shuffled, strict=True) if owner == index]
        assert_same_sound(np.concatenate(own), one_shot(codec, random_codes(codec, length, index)))


def test_windows_share_a_call_if_they_are_alike(codec: Codec) -> None:
    streams = [StreamWindows(codec, MAX_WINDOW) for _ in range(4)]
    counting: Any = CountingCodec(codec)
    vocoder = Vocoder(counting)

    def push(*sizes: int) -> list[tuple[int, int]]:
        counting.shapes.clear()
        vocoder.decode(
            [
                window
                for stream, size in zip(streams, sizes, strict=True)
                for window in stream.push(random_codes(codec, size, size))
            ]
        )
        return sorted(shape[:2] for shape in counting.shapes)

    assert push(12, 12, 12, 13) == [(1, 13), (3, 12)]
    assert push(5, 4, 5, 5) == [(1, 4), (3, 5)]
    assert push(13, 13, 13, 13) == [(4, 13)]


def test_no_windows_need_no_call(xcodec: Codec) -> None:
    counting: Any = CountingCodec(xcodec)
    assert Vocoder(counting).decode([]) == []
    assert counting.shapes == []


def test_a_long_input_is_decoded_piece_by_piece_with_the_same_result(conv_codec: Codec) -> None:
    codes = random_codes(conv_codec, 1234, seed=0)
    counting: Any = CountingCodec(conv_codec)

    pcm = Vocoder(counting).decode_all(codes)

    assert_same_sound(pcm, one_shot(conv_codec, codes))
    assert [frames for _, frames, _ in counting.shapes] == [500, 500, 234, 0]


def test_decoding_nothing_gives_nothing(codec: Codec) -> None:
    pcm = Vocoder(codec).decode_all(np.empty((0, codec.num_codebooks), np.int64))
    assert (pcm.dtype, pcm.shape) == (np.int16, (0,))


def test_decode_all_names_a_code_out_of_range(xcodec: Codec) -> None:
    codes = random_codes(xcodec, 20, seed=0)
    codes[11, 2] = 1024
    with pytest.raises(ValueError, match="stream 2: code 1024 of frame 11"):
        Vocoder(xcodec).decode_all(codes)


def test_float_to_int16_rounds_and_clips() -> None:
    audio = torch.tensor([0.0, 1.0, -1.0, 1.5, -7.0, 0.6 / 32767, -0.6 / 32767, 0.4 / 32767])
    assert to_int16(audio).tolist() == [0, 32767, -32767, 32767, -32767, 1, -1, 0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_samples_that_are_not_finite_are_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        to_int16(torch.tensor([0.0, value]))
