"""What cannot be decoded fails its own stream; health fails when nothing can be."""

import asyncio
import weakref

import numpy as np
import pytest
import torch

from tests.unit.vocoder.codec_stand_in import (
    FIRST_WINDOW,
    MAX_WINDOW,
    POISON,
    FaultyCodec,
    WrappedCodec,
    random_codes,
    say,
    service_with,
)
from vocoder_service import service as service_module
from vocoder_service.codec import Codec
from vocoder_service.frames import Frames
from vocoder_service.service import DecodeError, UnknownStreamError, VocoderService
from vocoder_service.streaming import State
from vocoder_service.vocoder import Vocoder


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
    several_windows = np.concatenate([overflowing, random_codes(xcodec, 3 * MAX_WINDOW, seed=1)])
    with pytest.raises(DecodeError, match="not finite"):
        await push_alone(several_windows)
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
