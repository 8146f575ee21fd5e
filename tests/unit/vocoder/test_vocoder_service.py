"""Many live streams share a vocoder, and none delays another."""

import asyncio
import random
import threading

import numpy as np
import pytest
import torch

from tests.unit.vocoder.codec_stand_in import (
    FIRST_WINDOW,
    MAX_WINDOW,
    GatedCodec,
    WrappedCodec,
    random_codes,
    say,
    service_with,
    until,
)
from vocoder_service import actor
from vocoder_service.codec import Codec
from vocoder_service.service import UnknownStreamError, VocoderService
from vocoder_service.streaming import State
from vocoder_service.vocoder import Vocoder


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
