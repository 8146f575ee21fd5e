"""Requests for speech over HTTP, as a listener has them; failures are results, not errors."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import numpy as np
from numpy.typing import NDArray

from demo_voice.client import PCM_RATE, played
from demo_voice.figures import Playback
from deployments.client import authorization

_REFUSED = 429
_SILENT = 0.003  # root mean square, of full scale
# Generation may take long; whether something listens is known at once.
_TIMEOUT = httpx.Timeout(120, connect=5)


@dataclass(frozen=True)
class Answer:
    """What became of one request.

    Attributes:
        asked: seconds from the start of the load until it was sent.
        playback: of a whole answer; None if it was refused or failed.
        pcm: int16 samples of ``demo_voice.client.PCM_RATE``.
        refused: the service said that it has no room (429).
        error: why it failed; None for a whole answer, and for a refused one.
    """

    text: str
    asked: float
    playback: Playback | None = None
    pcm: NDArray[np.int16] | None = None
    refused: bool = False
    error: str | None = None


class Speaker:
    """One client; connections are shared."""

    def __init__(self, http: httpx.AsyncClient, model: str, voices: list[str]) -> None:
        self._http = http
        self._model = model
        self._voices = voices
        self._numbers = 0

    async def speak(self, text: str, cfg_scale: float | None, began: float) -> Answer:
        """Streams one text to its end; voices take turns, every request has its own seed.

        Args:
            began: when the load began, by ``time.perf_counter``.
        """
        number, self._numbers = self._numbers, self._numbers + 1
        body = self._body(text, number, cfg_scale) | {"response_format": "pcm", "stream": True}
        start = time.perf_counter()
        try:
            async with self._http.stream("POST", "/v1/audio/speech", json=body) as answer:
                if answer.status_code == _REFUSED:
                    return Answer(text, start - began, refused=True)
                if answer.is_error:
                    reason = (await answer.aread()).decode(errors="replace")[:200]
                    return Answer(text, start - began, error=f"{answer.status_code}: {reason}")
                playback, audio = await played(answer, start)
        except httpx.HTTPError as error:
            return Answer(text, start - began, error=f"{type(error).__name__}: {error}")
        pcm = np.frombuffer(audio, "<i2").astype(np.int16)
        if fault := audio_fault(text, pcm):
            return Answer(text, start - began, error=fault)
        return Answer(text, start - began, playback, pcm)

    async def frames_per_second(self, text: str) -> float:
        """Of the model's audio: what the service counts for a text, over what is heard."""
        body = self._body(text, 0, None) | {"response_format": "pcm", "stream_format": "sse"}
        answer = await self._http.post("/v1/audio/speech", json=body)
        answer.raise_for_status()
        samples, frames = 0, 0
        for line in answer.text.splitlines():
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
            if event.get("type") == "speech.audio.delta":
                samples += len(base64.b64decode(event["audio"])) // 2
            elif event.get("type") == "speech.audio.done":
                frames = event["usage"]["output_tokens"]
        return frames / (samples / PCM_RATE)

    def _body(self, text: str, number: int, cfg_scale: float | None) -> dict[str, object]:
        voice = self._voices[number % len(self._voices)]
        body: dict[str, object] = {"model": self._model, "voice": voice, "input": text}
        return body | {"seed": number} | ({} if cfg_scale is None else {"cfg_scale": cfg_scale})


def audio_fault(text: str, pcm: NDArray[np.int16]) -> str | None:
    """What is wrong with some audio of a text; None if it has a likely length and is not silent."""
    seconds = len(pcm) / PCM_RATE
    if not 0.02 * len(text) <= seconds <= 0.4 * len(text) + 2:
        return f"{seconds:.2f} s of audio for {len(text)} characters"
    level = float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2))) / 2**15
    return "the audio is silent" if level < _SILENT else None


@asynccontextmanager
async def speaker(url: str) -> AsyncIterator[Speaker]:
    """A client of the first model that the service at ``url`` lists.

    Raises:
        CommandError: what the environment has can be no key.
    """
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=url, timeout=_TIMEOUT, limits=limits, headers=authorization()
    ) as http:
        answer = await http.get("/v1/models")
        answer.raise_for_status()
        card = answer.json()["data"][0]
        yield Speaker(http, card["id"], card["voices"])
