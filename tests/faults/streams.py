"""Live answers of every kind, and how each of them ends."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import numpy as np

Kind = Literal["streamed", "events", "whole"]
SAMPLE_RATE = 16_000  # of the endless model's codec


def body(**changes: Any) -> dict[str, Any]:
    """A guided request for two seconds of WAV."""
    return {
        "model": "demo",
        "voice": "rms",
        "input": "Hello there.",
        "seed": 7,
        "cfg_scale": 2,
        "max_duration_seconds": 2,
        "response_format": "wav",
        **changes,
    }


@dataclass(frozen=True)
class Ending:
    """How an answer ended.

    Attributes:
        how: complete, broken off, or with an error: before (``refused``) or behind its first byte.
        status: of HTTP; None if there was none.
        error: the body of the error, if there is one.
        content: what came of the audio.
        at: by ``time.monotonic``.
    """

    how: Literal["complete", "broken", "error event", "refused", "no connection"]
    status: int | None
    error: dict[str, Any] | None
    content: bytes
    at: float

    @property
    def seconds(self) -> float:
        """Of the audio that came as WAV."""
        return max(0, len(self.content) - 44) / 2 / SAMPLE_RATE


async def listen(
    http: httpx.AsyncClient, kind: Kind, begun: asyncio.Event | None = None, **changes: Any
) -> Ending:
    """Asks, and reads the answer to its end, however it ends.

    Args:
        begun: set with the first audio; of a whole answer, when it is sent.
    """
    asked = body(**changes, stream=kind == "streamed")
    if kind == "events":
        asked |= {"stream": None, "stream_format": "sse"}
    if kind == "whole" and begun is not None:
        begun.set()
    received, status = bytearray(), None
    try:
        async with http.stream("POST", "/v1/audio/speech", json=asked) as answer:
            status = answer.status_code
            if status != 200:
                text = await answer.aread()
                return Ending("refused", status, _error_in(text), b"", time.monotonic())
            async for piece in answer.aiter_raw():
                received += piece
                if begun is not None:
                    begun.set()
    except httpx.ConnectError:
        return Ending("no connection", None, None, b"", time.monotonic())
    except httpx.TransportError:
        return Ending("broken", status, None, bytes(received), time.monotonic())
    if kind != "events":
        return Ending("complete", status, None, bytes(received), time.monotonic())
    events = [json.loads(line[6:]) for line in bytes(received).split(b"\n\n") if line]
    audio = b"".join(base64.b64decode(e["audio"]) for e in events if "audio" in e)
    how: dict[str, Literal["complete", "error event"]]
    how = {"speech.audio.done": "complete", "error": "error event"}
    last = events[-1]
    return Ending(
        how.get(last["type"], "broken"), status, last.get("error"), audio, time.monotonic()
    )


def assert_same_audio(actual: bytes, expected: bytes) -> None:
    """Two WAV files are equal up to rounding: float sums depend on what shares a batch."""
    got, wanted = (np.frombuffer(wav[44:], "<i2").astype(int) for wav in (actual, expected))
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max() <= 3


def _error_in(text: bytes) -> dict[str, Any] | None:
    try:
        error: dict[str, Any] = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return error
