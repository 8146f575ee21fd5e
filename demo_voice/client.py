"""A running service, as the evaluation asks it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from demo_voice.figures import Playback
from deployments.client import TIMEOUT, authorization, checked, failures_told

PCM_RATE = 24_000
"""Samples per second (Hz) of the format ``pcm``."""

_BYTES_PER_SECOND = 2 * PCM_RATE


@dataclass(frozen=True)
class Card:
    """What the service says of a model.

    Attributes:
        cfg_scale: guidance where a request does not say.
    """

    id: str
    voices: tuple[str, ...]
    cfg_scale: float


@dataclass(frozen=True)
class Request:
    """A text to be spoken.

    Attributes:
        cfg_scale: guidance; 1 is off.
    """

    model: str
    voice: str
    text: str
    cfg_scale: float
    seed: int

    def body(self, **fields: Any) -> dict[str, Any]:
        """The JSON of ``POST /v1/audio/speech``."""
        return {
            "model": self.model,
            "voice": self.voice,
            "input": self.text,
            "cfg_scale": self.cfg_scale,
            "seed": self.seed,
            **fields,
        }


class Client:
    """Speaks to one service; see :func:`connect`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def card(self, model: str) -> Card:
        """
        Raises:
            CommandError: there is no such model.
        """
        entry = checked(await self._http.get(f"/v1/models/{model}")).json()
        return Card(entry["id"], tuple(entry["voices"]), float(entry["cfg_scale"]))

    async def speak(self, request: Request) -> tuple[bytes, str]:
        """The WAV file of a whole answer, and why it ended: ``stop`` or ``length``."""
        body = request.body(response_format="wav", stream=False)
        answer = checked(await self._http.post("/v1/audio/speech", json=body))
        return answer.content, answer.headers["x-finish-reason"]

    async def stream(self, request: Request) -> Playback:
        """When the pieces of a streamed answer arrived."""
        body = request.body(response_format="pcm", stream=True)
        began = time.perf_counter()
        async with self._http.stream("POST", "/v1/audio/speech", json=body) as answer:
            if answer.is_error:
                await answer.aread()
            playback, _ = await played(checked(answer), began)
        return playback

    async def streams(self, requests: list[Request]) -> list[Playback]:
        """All at once."""
        return await asyncio.gather(*map(self.stream, requests))


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Client]:
    """A client of the service at ``url``.

    Raises:
        CommandError: nothing listens there, or a request failed.
    """
    with failures_told(url):
        async with httpx.AsyncClient(
            base_url=url, timeout=TIMEOUT, headers=authorization()
        ) as http:
            yield Client(http)


async def played(answer: httpx.Response, began: float) -> tuple[Playback, bytes]:
    """When the pieces of a streamed answer in ``pcm`` arrive, and its audio.

    Args:
        began: when it was asked for, by ``time.perf_counter``.
    """
    spent = server_timing(answer.headers["server-timing"])
    arrivals, pieces = [], []
    async for piece in answer.aiter_raw():
        arrivals.append(time.perf_counter() - began)
        pieces.append(piece)
    seconds = tuple(len(piece) / _BYTES_PER_SECOND for piece in pieces)
    return Playback(tuple(arrivals), seconds, spent), b"".join(pieces)


def server_timing(header: str) -> dict[str, float]:
    """Seconds by name, of a ``server-timing`` header whose entries all have a duration."""
    entries = (entry.split(";dur=") for entry in header.split(", "))
    return {name: float(milliseconds) / 1000 for name, milliseconds in entries}
