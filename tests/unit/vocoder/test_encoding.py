"""Many callers of one encoder: order, a bounded queue, and callers who leave."""

import asyncio
import threading

import numpy as np
import pytest

from vocoder_service.busy import EncoderBusy
from vocoder_service.clips import Codes, EncoderLimits, Samples
from vocoder_service.encoding import EncodingService


class Held:
    """An encoder that waits for a signal and remembers what it was given."""

    sample_rate = 16000
    limits = EncoderLimits(320)

    def __init__(self) -> None:
        self.go = threading.Event()
        self.seen: list[float] = []

    def encode(self, samples: Samples) -> Codes:
        assert self.go.wait(10)
        self.seen.append(float(samples[0]))
        if samples[0] < 0:
            raise ValueError("audio is negative")
        return np.full((1, 1), samples[0], np.int32)


def clip(value: float) -> Samples:
    return np.array([value], np.float32)


async def test_clips_are_encoded_in_order_and_each_caller_gets_its_own() -> None:
    encoder = Held()
    encoder.go.set()
    service = EncodingService(encoder)
    codes = await asyncio.gather(*(service.encode(clip(i)) for i in range(9)))
    assert [int(c[0, 0]) for c in codes] == list(range(9))
    assert encoder.seen == list(range(9))
    assert service.waiting == 0


async def test_a_full_queue_refuses_and_a_caller_who_leaves_makes_room() -> None:
    encoder = Held()
    service = EncodingService(encoder, max_waiting=2)
    first, second = (asyncio.create_task(service.encode(clip(i))) for i in (1, 2))
    await asyncio.sleep(0)
    with pytest.raises(EncoderBusy, match="2 clips"):
        await service.encode(clip(3))
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(service.encode(clip(3)))
    await asyncio.sleep(0)
    first.cancel()  # is being encoded: its place is taken until it is done
    await asyncio.gather(first, return_exceptions=True)
    with pytest.raises(EncoderBusy):
        await service.encode(clip(4))
    encoder.go.set()
    assert int((await third)[0, 0]) == 3
    assert encoder.seen == [1, 3]
    assert service.waiting == 0


async def test_an_error_is_the_callers_own() -> None:
    encoder = Held()
    encoder.go.set()
    service = EncodingService(encoder)
    bad, good = await asyncio.gather(
        service.encode(clip(-1)), service.encode(clip(1)), return_exceptions=True
    )
    assert isinstance(bad, ValueError)
    assert isinstance(good, np.ndarray)


def test_a_queue_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_waiting"):
        EncodingService(Held(), max_waiting=0)
