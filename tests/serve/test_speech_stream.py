"""``/v1/audio/speech/stream`` of a running service."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.serve.service_process import Service

pytestmark = pytest.mark.serve

START: dict[str, Any] = {"type": "start", "model": "demo", "voice": "slt", "seed": 3}
Stats = Callable[[], dict[str, Any]]


async def until(socket: ClientConnection, last: str) -> tuple[list[dict[str, Any]], bytes]:
    """The messages up to the first of a type, and the audio between them."""
    said: list[dict[str, Any]] = []
    audio = b""
    while not said or said[-1]["type"] != last:
        message = await socket.recv()
        if isinstance(message, bytes):
            audio += message
        else:
            said.append(json.loads(message))
    return said, audio


async def send(socket: ClientConnection, **message: Any) -> None:
    await socket.send(json.dumps(message))


def url_of(service: Service) -> str:
    return service.url.replace("http", "ws", 1) + "/v1/audio/speech/stream"


async def test_the_same_conversation_gives_the_same_audio(service: Service) -> None:
    heard = []
    for pieces in (["It is late. We are", " leaving now."], ["It is late. We are leaving now."]):
        async with connect(url_of(service)) as socket:
            await send(socket, **START, max_duration_seconds=2)
            for piece in pieces:
                await send(socket, type="text", text=piece)
            await send(socket, type="end")
            said, audio = await until(socket, "done")
            await socket.wait_closed()
            assert socket.close_code == 1000
        assert said[0]["type"] == "started"
        heard.append((said, len(audio)))
    assert heard[0] == heard[1]
    assert 1.99 < heard[0][1] / 2 / 24_000 <= 2


async def test_who_does_not_read_gets_no_more_than_a_minute_ahead(
    service: Service, stats: Stats
) -> None:
    """Of four minutes, 23 MB; a connection holds 4 that nobody reads. Others are served."""
    began = time.monotonic()
    async with AsyncExitStack() as held:
        for _ in range(2):
            socket = await held.enter_async_context(connect(url_of(service), max_queue=1))
            await send(socket, **START, speed=0.25, sample_rate=48_000, max_duration_seconds=60)
            await send(socket, type="text", text="This is said to somebody who does not listen.")
            await send(socket, type="end")
        while not (await asyncio.to_thread(stats))["requests"]:
            await asyncio.sleep(0.1)
        while (await asyncio.to_thread(stats))["requests"]:  # until all of it is made
            await asyncio.sleep(0.5)
        async with connect(url_of(service)) as other:
            await send(other, **START, max_duration_seconds=1)
            await send(other, type="text", text="It is late.")
            await send(other, type="end")
            await asyncio.wait_for(until(other, "done"), 30)
        sent = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                while True:
                    sent += len(await socket.recv())
        seconds = sent / 2 / 48_000
        assert 60 < seconds < 70 + time.monotonic() - began < 200


async def test_a_barge_in_stops_the_engine_within_a_second(service: Service, stats: Stats) -> None:
    async with connect(url_of(service)) as socket:
        await send(socket, **START, cfg_scale=2)
        await send(socket, type="text", text="This will be a very long story. It begins")
        await until(socket, "utterance")
        assert isinstance(await socket.recv(), bytes)
        await send(socket, type="cancel")
        await until(socket, "cancelled")
        deadline = time.monotonic() + 1
        while (now := await asyncio.to_thread(stats))["requests"] or now["engine"]["rows_running"]:
            assert time.monotonic() < deadline, now
        with pytest.raises(TimeoutError):  # nothing more is heard
            await asyncio.wait_for(socket.recv(), 0.5)
        await send(socket, type="text", text="Something short is said.")
        await send(socket, type="flush")
        said, _ = await asyncio.wait_for(until(socket, "utterance"), 30)
        assert said[-1]["text"] == "Something short is said."
