"""Codecs that decode or fail when the test says so, and streams of a service that uses them."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from vocoder_service.codec import Codec
from vocoder_service.frames import Frames
from vocoder_service.service import VocoderService
from vocoder_service.streaming import State

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
