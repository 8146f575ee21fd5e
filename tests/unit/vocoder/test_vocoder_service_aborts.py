"""What ends a stream of a shared vocoder before its end, and what that leaves behind."""

import asyncio

import pytest

from tests.unit.vocoder.codec_stand_in import (
    FIRST_WINDOW,
    MAX_WINDOW,
    GatedCodec,
    random_codes,
    service_with,
    until,
)
from vocoder_service.codec import Codec
from vocoder_service.service import StreamAbortedError, UnknownStreamError, VocoderService


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
