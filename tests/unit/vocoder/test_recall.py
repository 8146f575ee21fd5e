"""Decoders that remember: a stream in windows sounds as in one piece, whatever else happens."""

from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vocoder_service.codec import Codec
from vocoder_service.frames import Frames
from vocoder_service.stages import Run
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


def test_a_frame_is_heard_long_after_its_context(remembering: Codec) -> None:
    codes = random_codes(remembering, 60, seed=0)
    changed = codes.copy()
    changed[0] = (codes[0] + 1) % remembering.codebook_size
    late = 25 * remembering.hop_length
    assert (
        difference(one_shot(remembering, codes)[late:], one_shot(remembering, changed)[late:]) > 9
    )


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    maximum=st.integers(1, 12),
    last=st.integers(0, 12),
)
def test_any_cut_of_a_stream_sounds_as_one_piece(
    remembering: Codec, sizes: list[int], maximum: int, last: int
) -> None:
    codes = random_codes(remembering, sum(sizes) + last, seed=len(sizes))
    stream = StreamWindows(remembering, maximum)
    vocoder = Vocoder(remembering)
    parts, begin = [], 0
    for size in sizes:
        parts += vocoder.decode(stream.push(codes[begin : begin + size]))
        begin += size
    parts += vocoder.decode(stream.finish(codes[begin:]))
    assert difference(np.concatenate(parts), one_shot(remembering, codes)) <= 1


def test_streams_in_one_batch_keep_their_own_memories(remembering: Codec) -> None:
    streams = [random_codes(remembering, frames, seed=frames) for frames in (31, 5, 58, 44, 31)]
    windows = [windows_of(remembering, codes) for codes in streams]
    shuffled = [index for index, own in enumerate(windows) for _ in own]
    Random(0).shuffle(shuffled)
    remaining = [iter(own) for own in windows]

    parts = Vocoder(remembering).decode([next(remaining[index]) for index in shuffled])

    for index, codes in enumerate(streams):
        own = [part for part, owner in zip(parts, shuffled, strict=True) if owner == index]
        assert difference(np.concatenate(own), one_shot(remembering, codes)) <= 1


def test_without_its_memory_a_window_sounds_otherwise(remembering: Codec) -> None:
    codes = random_codes(remembering, 40, seed=0)
    vocoder = Vocoder(remembering)
    parts = []
    for window in windows_of(remembering, codes):
        window.memory.state = None
        parts += vocoder.decode([window])
    assert difference(np.concatenate(parts), one_shot(remembering, codes)) > 1


def test_windows_out_of_order_are_refused_and_forget_nothing(remembering: Codec) -> None:
    codes = random_codes(remembering, 60, seed=0)
    first, second, third, *rest = windows_of(remembering, codes)
    vocoder = Vocoder(remembering)
    parts = vocoder.decode([first, second])
    for wrong in (second, rest[0]):
        with pytest.raises(RuntimeError, match="remembered up to frame"):
            vocoder.decode([wrong])
    parts += vocoder.decode([third, *rest])
    assert difference(np.concatenate(parts), one_shot(remembering, codes)) <= 1


def test_a_batch_that_fails_is_not_remembered(remembering: Codec) -> None:
    class Breaking:
        """Breaks down in its second call."""

        calls = 0

        def __getattr__(self, name: str) -> object:
            return getattr(remembering.stages, name)

        def back(self, latents: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            wave = remembering.stages.back(latents) if remembering.stages else latents
            return wave / 0 if self.calls == 2 else wave

    class Failing:
        stages = Breaking()

        def __getattr__(self, name: str) -> object:
            return getattr(remembering, name)

    codes = random_codes(remembering, 60, seed=0)
    windows = windows_of(remembering, codes)
    failing: Any = Failing()

    with pytest.raises(ValueError, match="not finite"):
        Vocoder(failing).decode(windows)

    parts = Vocoder(remembering).decode(windows)
    assert difference(np.concatenate(parts), one_shot(remembering, codes)) <= 1


def test_what_is_remembered_does_not_grow(remembering: Codec) -> None:
    vocoder = Vocoder(remembering)
    stream = StreamWindows(remembering, MAX_WINDOW)
    others = [StreamWindows(remembering, MAX_WINDOW) for _ in range(3)]
    held = set()
    for seed in range(40):
        codes = random_codes(remembering, MAX_WINDOW, seed)
        windows = [w for each in (stream, *others) for w in each.push(codes)]
        vocoder.decode(windows)
        state = windows[0].memory.state
        if seed > 20:
            assert state is not None
            held.add(state.untyped_storage().nbytes())
            assert state.untyped_storage().nbytes() == state.nbytes  # not a part of the batch
    assert len(held) == 1


def test_a_sequence_model_reads_in_pieces_what_it_reads_at_once(remembering: Codec) -> None:
    assert remembering.stages is not None
    hidden = remembering.stages.front(
        torch.from_numpy(random_codes(remembering, 30, seed=0).T[None].copy())
    )[0].T
    ((whole, state),) = remembering.stages.advance([Run(hidden, 0, None)])
    pieces, before = [], None
    for begin, end in ((0, 7), (7, 7), (7, 8), (8, len(hidden))):
        ((outputs, before),) = remembering.stages.advance([Run(hidden[begin:end], begin, before)])
        pieces.append(outputs)
    assert torch.allclose(torch.cat(pieces), whole, atol=1e-6)
    assert before is not None
    assert torch.allclose(before, state, atol=1e-6)
