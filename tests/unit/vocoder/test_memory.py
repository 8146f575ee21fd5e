"""A stream in windows sounds as in one piece, whatever else happens to it."""

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

MAX_WINDOW = 9


def random_codes(codec: Codec, frames: int, seed: int) -> Frames:
    rng = np.random.default_rng(seed)
    return rng.integers(codec.codebook_size, size=(frames, codec.num_codebooks))


def one_shot(codec: Codec, codes: Frames) -> Pcm:
    pcm: Pcm = to_int16(codec.decode(torch.from_numpy(codes.T[None].copy())))[0].numpy()
    return pcm


def windows_of(codec: Codec, codes: Frames) -> list[Window]:
    stream = StreamWindows(codec, MAX_WINDOW)
    return stream.push(codes) + stream.finish()


def difference(one: Pcm, other: Pcm) -> int:
    assert one.shape == other.shape
    return int(np.abs(one.astype(int) - other).max(initial=0))


def test_a_frame_is_heard_for_long(remembering: Codec) -> None:
    codes = random_codes(remembering, 60, seed=0)
    changed = codes.copy()
    changed[0] = (codes[0] + 1) % remembering.codebook_size
    late = 25 * remembering.hop_length
    assert (
        difference(one_shot(remembering, codes)[late:], one_shot(remembering, changed)[late:]) > 9
    )


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=12),
    maximum=st.integers(1, 12),
    last=st.integers(0, 12),
)
def test_any_cut_of_a_stream_sounds_as_one_piece(
    codec: Codec, sizes: list[int], maximum: int, last: int
) -> None:
    codes = random_codes(codec, sum(sizes) + last, seed=len(sizes))
    stream = StreamWindows(codec, maximum)
    vocoder = Vocoder(codec)
    parts, begin = [], 0
    for size in sizes:
        parts += vocoder.decode(stream.push(codes[begin : begin + size]))
        begin += size
    parts += vocoder.decode(stream.finish(codes[begin:]))
    assert difference(np.concatenate(parts), one_shot(codec, codes)) <= 1


def test_every_window_is_heard_as_far_as_it_is_determined(codec: Codec) -> None:
    stream = StreamWindows(codec, MAX_WINDOW)
    vocoder = Vocoder(codec)
    heard = arrived = 0
    for size in (codec.first_frames, 1, 4, MAX_WINDOW):
        codes = random_codes(codec, size, seed=size)
        heard += sum(map(len, vocoder.decode(stream.push(codes))))
        arrived += size
        whole = arrived - codec.right_context
        assert whole <= heard / codec.hop_length < whole + 1


def test_without_its_memory_a_window_sounds_otherwise(codec: Codec) -> None:
    class Forgetful:
        def advance(
            self, codes: torch.Tensor, before: State | None, last: bool
        ) -> tuple[torch.Tensor, State]:
            def silent(state: State) -> State:
                if isinstance(state, torch.Tensor):
                    return torch.zeros_like(state)
                return tuple(map(silent, state))

            return codec.advance(codes, None if before is None else silent(before), last)

        def __getattr__(self, name: str) -> object:
            return getattr(codec, name)

    codes = random_codes(codec, 40, seed=0)
    forgetful: Any = Forgetful()
    parts = Vocoder(forgetful).decode(windows_of(codec, codes))
    assert difference(np.concatenate(parts), one_shot(codec, codes)) > 1


def test_windows_out_of_order_are_refused_and_forget_nothing(codec: Codec) -> None:
    codes = random_codes(codec, 60, seed=0)
    first, second, third, *rest = windows_of(codec, codes)
    vocoder = Vocoder(codec)
    parts = vocoder.decode([first, second])
    for wrong in (second, rest[0]):
        with pytest.raises(RuntimeError, match="remembered up to frame"):
            vocoder.decode([wrong])
    parts += vocoder.decode([third, *rest])
    assert difference(np.concatenate(parts), one_shot(codec, codes)) <= 1
    with pytest.raises(RuntimeError, match="remembered up to frame"):
        vocoder.decode([rest[-1]])


def test_a_batch_that_fails_is_not_remembered(codec: Codec) -> None:
    class Breaking:
        """Breaks down in its second call."""

        calls = 0

        def advance(
            self, codes: torch.Tensor, before: State | None, last: bool
        ) -> tuple[torch.Tensor, State]:
            self.calls += 1
            audio, after = codec.advance(codes, before, last)
            return audio / 0 if self.calls == 2 else audio, after

        def __getattr__(self, name: str) -> object:
            return getattr(codec, name)

    codes = random_codes(codec, 60, seed=0)
    windows = windows_of(codec, codes)
    breaking: Any = Breaking()

    with pytest.raises(ValueError, match="not finite"):
        Vocoder(breaking).decode(windows)

    parts = Vocoder(codec).decode(windows)
    assert difference(np.concatenate(parts), one_shot(codec, codes)) <= 1


def test_what_is_remembered_does_not_grow_and_ends_with_the_stream(codec: Codec) -> None:
    vocoder = Vocoder(codec)
    streams = [StreamWindows(codec, 3 * MAX_WINDOW) for _ in range(3)]
    held = set()
    for seed in range(6):
        codes = random_codes(codec, 11 if seed == 0 else seed, seed)
        windows = [window for stream in streams for window in stream.push(codes)]
        vocoder.decode(windows)
        state = windows[0].memory.state
        assert state is not None
        held.add(state.bytes)  # of its storage, so it is no part of the batch
    assert len(held) == 1
    if codec.right_context:
        (end,) = streams[0].finish()
        vocoder.decode([end])
        assert end.memory.state is None
