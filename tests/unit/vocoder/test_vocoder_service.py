"""Many live streams share a vocoder; none can hurt, delay or outlive another."""

import asyncio
import random
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from vocoder_service import actor
from vocoder_service import service as service_module
from vocoder_service.codec import Codec
from vocoder_service.frames import Frames
from vocoder_service.service import (
    DecodeError,
    StreamAbortedError,
    UnknownStreamError,
    VocoderService,
)
from vocoder_service.streaming import State
from vocoder_service.vocoder import Vocoder

MAX_WINDOW = 16
FIRST_WINDOW = 14  # frames: 4 and 10 of right context
POISON = 777  # a code on which FaultyCodec fails


def random_codes(codec: Codec, frames: int, seed: int) -> Frames:
    rng = np.random.default_rng(seed)
    return rng.integers(POISON, size=(frames, codec.num_codebooks))


class WrappedCodec:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def advance(
        self, codes: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        return self._codec.advance(codes, before, last)

    def __getattr__(self, name: str) -> object:
        return getattr(self._codec, name)


class GatedCodec(WrappedCodec):
    """Decodes when the test says so."""

    def __init__(self, codec: Codec) -> None:
        super().__init__(codec)
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.batch_sizes: list[int] = []

    def advance(
        self, codes: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        self.batch_sizes.append(len(codes))
        self.entered.release()
        assert self.gate.acquire(timeout=30)
        return super().advance(codes, before, last)

    async def wait_until_decoding(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=30)


class FaultyCodec(WrappedCodec):
    """Fails on a code, as a device might."""

    broken = False
    poison = POISON

    def advance(
        self, codes: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        if self.broken or (codes == self.poison).any():
            raise RuntimeError("device fault")
        return super().advance(codes, before, last)


def service_with(codec: Any, max_batch: int = 32) -> VocoderService:
    return VocoderService(codec, MAX_WINDOW, max_batch)


async def say(service: VocoderService, stream_id: str, codes: Frames, seed: int) -> bytes:
    chunks = random.Random(seed)
    service.open(stream_id)
    pcm = b""
    while len(codes):
        size = chunks.randint(1, 20)
        pcm += await service.push(stream_id, codes[:size])
        codes = codes[size:]
        await asyncio.sleep(chunks.random() / 100)
    return pcm + await service.finish(stream_id)


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


async def test_twenty_streams_at_once_each_equal_their_one_shot_decode(codec: Codec) -> None:
    service = VocoderService(codec, MAX_WINDOW)
    rng = random.Random(0)
    codes = [random_codes(codec, rng.randint(1, 90), seed) for seed in range(20)]
    codes = [stream % codec.codebook_size for stream in codes]

    heard = await asyncio.gather(
        *(say(service, f"stream {i}", stream, i) for i, stream in enumerate(codes))
    )

    vocoder = Vocoder(codec)
    for pcm, stream in zip(heard, codes, strict=True):
        expected = vocoder.decode_all(stream)
        actual = np.frombuffer(pcm, "<i2")
        assert actual.shape == expected.shape
        assert np.abs(actual.astype(int) - expected).max() <= 1
    stats = service.stats()
    assert (stats.live_streams, stats.queue_depth) == (0, 0)
    assert stats.windows_decoded > stats.batches  # some were batched
    assert stats.mean_batch_size == stats.windows_decoded / stats.batches
    assert stats.decode_seconds > 0


async def test_audio_comes_as_soon_as_its_right_context_is_there(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    service.open("a")
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)

    assert await service.push("a", codes[:10]) == b""
    early = len(await service.push("a", codes[10:])) / 2 / 320
    assert 4 <= early < 5  # the last of the ten frames behind is not heard to its end
    assert early + len(await service.finish("a")) / 2 / 320 == FIRST_WINDOW


async def test_the_load_says_how_busy_the_vocoder_was_and_fades(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    assert service.load == 0
    await say(service, "a", random_codes(xcodec, 60, seed=0), seed=0)
    busy = service.load
    assert 0 < busy <= 1
    await asyncio.sleep(0.05)
    assert service.load < busy


async def test_a_stream_without_frames_finishes_with_nothing(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    service.open("a")
    assert await service.push("a", random_codes(xcodec, 0, seed=0)) == b""
    assert await service.finish("a") == b""
    assert service.stats().live_streams == 0


async def test_windows_that_wait_for_a_batch_make_the_next_one_together(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated, max_batch=3)
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    for stream in "abcdef":
        service.open(stream)

    pushes = [asyncio.create_task(service.push("a", codes))]
    await gated.wait_until_decoding()
    pushes += [asyncio.create_task(service.push(stream, codes)) for stream in "bcdef"]
    await until(lambda: service.stats().queue_depth == 5)
    gated.gate.release(3)
    await asyncio.gather(*pushes)

    assert gated.batch_sizes == [1, 3, 2]
    stats = service.stats()
    assert (stats.batches, stats.windows_decoded, stats.mean_batch_size) == (3, 6, 2)


async def test_abort_ends_a_waiting_push_and_frees_the_stream(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated)
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    service.open("being decoded")
    service.open("waiting")
    decoding = asyncio.create_task(service.push("being decoded", codes))
    await gated.wait_until_decoding()
    waiting = asyncio.create_task(service.push("waiting", codes))
    await until(lambda: service.stats().queue_depth == 1)

    service.abort("being decoded")
    service.abort("waiting")

    for push in (decoding, waiting):
        with pytest.raises(StreamAbortedError, match="aborted"):
            await push
    assert (service.stats().live_streams, service.stats().queue_depth) == (0, 0)
    gated.gate.release()
    await until(lambda: service.stats().batches == 1)
    with pytest.raises(UnknownStreamError):
        await service.push("waiting", codes)


async def test_an_aborted_id_can_be_used_again_at_once(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated)
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    service.open("a")
    aborted = asyncio.create_task(service.push("a", codes))
    await gated.wait_until_decoding()

    service.abort("a")
    service.open("a")
    gated.gate.release(3)

    with pytest.raises(StreamAbortedError):
        await aborted
    pcm = await service.push("a", codes) + await service.finish("a")
    assert len(pcm) == 2 * 320 * FIRST_WINDOW


async def test_abort_is_idempotent(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    service.abort("never opened")
    service.open("a")
    service.abort("a")
    service.abort("a")
    assert service.stats().live_streams == 0


async def test_abort_ends_a_waiting_finish(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated)
    service.open("a")
    await service.push("a", random_codes(xcodec, 3, seed=0))
    finishing = asyncio.create_task(service.finish("a"))
    await gated.wait_until_decoding()

    service.abort("a")

    with pytest.raises(StreamAbortedError):
        await finishing
    gated.gate.release()


async def test_a_cancelled_push_closes_its_stream(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated)
    service.open("a")
    push = asyncio.create_task(service.push("a", random_codes(xcodec, FIRST_WINDOW, seed=0)))
    await gated.wait_until_decoding()

    push.cancel()
    with pytest.raises(asyncio.CancelledError):
        await push

    with pytest.raises(UnknownStreamError):
        await service.finish("a")
    gated.gate.release()
    await until(lambda: service.stats().batches == 1)


async def test_a_wrong_code_fails_its_push_only(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    codes = random_codes(xcodec, 30, seed=0)
    wrong = codes.copy()
    wrong[3, 5] = 1024
    service.open("good")
    service.open("bad")

    good, bad = await asyncio.gather(
        service.push("good", codes), service.push("bad", wrong), return_exceptions=True
    )

    assert isinstance(bad, ValueError)
    assert "stream 5: code 1024 of frame 3 is outside 0..1023" in str(bad)
    assert isinstance(good, bytes)
    again = await service.push("bad", codes)  # nothing of the wrong push was kept
    assert np.abs(np.frombuffer(again, "<i2").astype(int) - np.frombuffer(good, "<i2")).max() <= 1


async def test_a_window_that_cannot_be_decoded_fails_its_stream_only(xcodec: Codec) -> None:
    service = service_with(FaultyCodec(xcodec))
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    poisoned = codes.copy()
    poisoned[0, 0] = POISON
    for stream in ("good", "bad"):
        service.open(stream)

    good, bad = await asyncio.gather(
        service.push("good", codes), service.push("bad", poisoned), return_exceptions=True
    )

    assert isinstance(good, bytes)
    assert isinstance(bad, DecodeError)
    assert "device fault" in str(bad)
    assert service.stats().live_streams == 1
    with pytest.raises(UnknownStreamError):
        await service.push("bad", codes)
    service.check_health()


async def test_what_fails_beside_a_stream_leaves_its_memory_alone(codec: Codec) -> None:
    class Faulty(FaultyCodec):
        poison = codec.codebook_size - 1

    service = service_with(Faulty(codec))
    codes = random_codes(codec, 90, seed=0) % Faulty.poison
    poisoned = codes[:30].copy()
    poisoned[-1, 0] = Faulty.poison
    service.open("good")
    pcm = b""
    for begin in range(0, 90, 30):
        service.open(f"bad {begin}")
        good, bad = await asyncio.gather(
            service.push("good", codes[begin : begin + 30]),
            service.push(f"bad {begin}", poisoned),
            return_exceptions=True,
        )
        assert isinstance(good, bytes)
        assert isinstance(bad, DecodeError)
        pcm += good
    pcm += await service.finish("good")

    expected = Vocoder(codec).decode_all(codes)
    heard = np.frombuffer(pcm, "<i2").astype(int)
    assert heard.shape == expected.shape
    assert np.abs(heard - expected).max() <= 1
    assert service.stats().live_streams == 0


async def test_health_fails_while_nothing_can_be_decoded(xcodec: Codec) -> None:
    faulty = FaultyCodec(xcodec)
    service = service_with(faulty)
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    service.check_health()

    faulty.broken = True
    service.open("a")
    with pytest.raises(DecodeError):
        await service.push("a", codes)
    with pytest.raises(DecodeError, match="device fault"):
        service.check_health()

    faulty.broken = False
    service.open("a")
    await service.push("a", codes)
    service.check_health()


async def test_a_decode_whose_failure_cannot_even_be_logged_ends_its_streams(
    xcodec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory there may be none to say so. Nobody waits for ever, and others go on."""
    codec = FaultyCodec(xcodec)
    service = service_with(codec)

    def log(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(service_module._log, "error", log)
    codec.broken = True
    with pytest.raises(DecodeError, match="MemoryError"):
        await asyncio.wait_for(say(service, "a", random_codes(xcodec, 30, 1), 1), 30)
    codec.broken = False
    assert await asyncio.wait_for(say(service, "b", random_codes(xcodec, 30, 2), 2), 30)


async def test_a_stream_that_fails_by_itself_says_nothing_of_the_vocoder(xcodec: Codec) -> None:
    class Overflowing(FaultyCodec):
        def advance(
            self, codes: torch.Tensor, before: State | None, last: bool
        ) -> tuple[torch.Tensor, State]:
            overflows = (codes == POISON + 1).flatten(1).any(1)
            audio, after = super().advance(codes, before, last)
            return audio.masked_fill(overflows[:, None], float("nan")), after

    codec = Overflowing(xcodec)
    service = service_with(codec)
    codes = random_codes(xcodec, FIRST_WINDOW, seed=0)
    overflowing = codes.copy()
    overflowing[0, 0] = POISON + 1

    async def push_alone(codes: Frames) -> bytes:
        service.open("alone")
        return await service.push("alone", codes)

    with pytest.raises(DecodeError, match="not finite"):
        await push_alone(overflowing)
    service.check_health()

    codec.broken = True
    with pytest.raises(DecodeError, match="device fault"):
        await push_alone(codes)
    codec.broken = False
    with pytest.raises(DecodeError, match="not finite"):
        await push_alone(overflowing)
    with pytest.raises(DecodeError, match="device fault"):
        service.check_health()
    await push_alone(codes)
    service.check_health()


async def test_a_failure_keeps_nothing_of_the_decode(xcodec: Codec) -> None:
    activations: list[weakref.ref[torch.Tensor]] = []

    class OutOfMemory(WrappedCodec):
        def advance(
            self, codes: torch.Tensor, before: State | None, last: bool
        ) -> tuple[torch.Tensor, State]:
            signal = torch.zeros(8)
            activations.append(weakref.ref(signal))
            raise torch.OutOfMemoryError(f"{len(signal)} bytes are too many")

    service = service_with(OutOfMemory(xcodec))
    for stream in "ab":
        service.open(stream)
    failures = await asyncio.gather(
        *(service.push(s, random_codes(xcodec, FIRST_WINDOW, seed=0)) for s in "ab"),
        return_exceptions=True,
    )

    assert [type(failure) for failure in failures] == [DecodeError, DecodeError]
    with pytest.raises(DecodeError, match="8 bytes"):
        service.check_health()
    assert len(activations) == 3  # together, then each alone
    assert not any(activation() is not None for activation in activations)


def test_an_actor_warms_the_thread_up_that_decodes(
    xcodec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    class Noting(WrappedCodec):
        def advance(
            self, codes: torch.Tensor, before: State | None, last: bool
        ) -> tuple[torch.Tensor, State]:
            threads.append(threading.current_thread())
            return super().advance(codes, before, last)

    monkeypatch.setattr(actor, "load_codec", lambda *_: Noting(xcodec))
    warmed = actor._VocoderActor("a codec's directory")
    at_start = len(threads)

    async def decode() -> None:
        await warmed.open("a")
        await warmed.push("a", random_codes(xcodec, FIRST_WINDOW, seed=0))

    asyncio.run(decode())
    assert 0 < at_start < len(threads)
    assert len(set(threads)) == 1


async def test_the_loop_stays_responsive_while_a_batch_decodes(xcodec: Codec) -> None:
    gated = GatedCodec(xcodec)
    service = service_with(gated)
    service.open("a")
    push = asyncio.create_task(service.push("a", random_codes(xcodec, FIRST_WINDOW, seed=0)))
    await gated.wait_until_decoding()

    service.open("b")
    assert await service.push("b", random_codes(xcodec, 5, seed=1)) == b""
    assert not push.done()

    gated.gate.release()
    assert await push


@pytest.mark.parametrize("stream", ["never opened", "finished", "aborted"])
async def test_a_stream_that_is_not_open_is_named(xcodec: Codec, stream: str) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    service.open("finished")
    await service.finish("finished")
    service.open("aborted")
    service.abort("aborted")

    with pytest.raises(UnknownStreamError, match=f"'{stream}' is not open"):
        await service.push(stream, random_codes(xcodec, 1, seed=0))
    with pytest.raises(UnknownStreamError, match=f"'{stream}' is not open"):
        await service.finish(stream)


async def test_a_live_id_cannot_be_opened_twice(xcodec: Codec) -> None:
    service = VocoderService(xcodec, MAX_WINDOW)
    service.open("a")
    with pytest.raises(ValueError, match="'a' is already open"):
        service.open("a")


def test_a_batch_holds_at_least_one_window(xcodec: Codec) -> None:
    with pytest.raises(ValueError, match="max_batch"):
        VocoderService(xcodec, max_batch=0)
