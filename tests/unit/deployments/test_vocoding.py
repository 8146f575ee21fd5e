"""How a request uses its vocoder, and how its stream ends whatever becomes of the request."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from ray.exceptions import RayActorError

from deployments.metrics import emit
from deployments.metrics.sinks import PrometheusSink
from deployments.replica.vocoding import Vocoding
from vocoder_service.actor import CodecInfo, Decoded
from vocoder_service.schedule import WindowSchedule
from vocoder_service.service import DecodeError

CODEC = CodecInfo(16_000, 320, 4, 64, 2)
caller: ContextVar[str] = ContextVar("caller", default="nobody")


class Call:
    """A method of an actor that is busy: whatever is called runs a little later."""

    def __init__(self, vocoder: Vocoder, name: str) -> None:
        self._vocoder, self._name = vocoder, name

    async def remote(self, stream_id: str, *frames: Any) -> Any:
        self._vocoder.calls.append((self._name, caller.get()))
        await asyncio.sleep(0.01)
        if self._vocoder.dead:
            raise RayActorError
        if self._vocoder.full and self._name in ("push", "finish"):
            raise DecodeError("a window was not decoded: CUDA out of memory.")
        if self._name == "open":
            self._vocoder.live.add(stream_id)
        elif self._name == "abort":
            self._vocoder.live.discard(stream_id)
        else:
            return Decoded(b"pcm", 0.25)


class Vocoder:
    """Remembers its streams, and in whose name it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.live: set[str] = set()
        self.dead = False
        self.full = False

    def __getattr__(self, name: str) -> Call:
        return Call(self, name)


async def request(vocoding: Vocoding) -> None:
    """One that never ends by itself."""
    caller.set("a request")
    sound = vocoding.stream("r")
    try:
        await sound.open()
        while True:
            await sound.add(np.zeros((8, 4), np.int32))
    finally:
        sound.abort()
        await asyncio.sleep(0.01)  # its engine is told, too


async def cancelled(vocoding: Vocoding, after: float, times: int) -> None:
    task = asyncio.create_task(request(vocoding))
    await asyncio.sleep(after)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.05)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("after", [0.03, 0.1])
async def test_a_stream_ends_however_often_its_request_is_cancelled(
    after: float, times: int
) -> None:
    vocoder = Vocoder()
    await cancelled(Vocoding(vocoder, CODEC, WindowSchedule(), 0), after, times)
    assert not vocoder.live


async def test_what_ends_a_stream_is_not_a_call_of_its_request() -> None:
    """Ray cancels, with a request, the calls that it has made and that have not run yet."""
    vocoder = Vocoder()
    await cancelled(Vocoding(vocoder, CODEC, WindowSchedule(), 0), 0.05, 1)
    names = dict(vocoder.calls)
    assert names == {"open": "a request", "push": "a request", "abort": "nobody"}


async def test_a_dead_vocoder_has_forgotten_its_streams(caplog: pytest.LogCaptureFixture) -> None:
    vocoder = Vocoder()
    vocoding = Vocoding(vocoder, CODEC, WindowSchedule(), 0)
    sound = vocoding.stream("r")
    await sound.open()
    vocoder.dead = True
    with caplog.at_level(logging.WARNING):
        sound.abort()
        await asyncio.sleep(0.05)
    assert f"stream {sound.id} went with its vocoder" in caplog.text


async def test_no_codes_but_the_codecs_reach_it_and_its_load_is_remembered() -> None:
    vocoder = Vocoder()
    vocoding = Vocoding(vocoder, CODEC, WindowSchedule(4, 1.5, 16), 1)
    sound = vocoding.stream("r")
    await sound.open()
    assert await sound.add(np.zeros((2, 5), np.int32)) == b""
    assert await sound.add(np.zeros((30, 5), np.int32)) == b"pcm"
    assert vocoding.load.value(0.0) == 0.25


async def test_a_want_of_memory_is_counted_and_passed_on() -> None:
    vocoder, sink = Vocoder(), PrometheusSink()
    vocoder.full = True
    sound = Vocoding(vocoder, CODEC, WindowSchedule(), 0).stream("r")
    with emit.using(sink, model="m"):
        for frames in (sound.add(np.zeros((30, 4), np.int32)), sound.finish()):
            with pytest.raises(DecodeError):
                await frames
    part = {"model": "m", "part": "vocoder"}
    assert sink.registry.get_sample_value("speechlm_out_of_memory_events_total", part) == 2
