"""Stand-ins for what a replica has: an engine, and a vocoder in its actor."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from deployments.replica.vocoding import Vocoding
from engine_adapter.families import FAMILIES
from engine_adapter.request import Chunk, RequestError, SpeechRequest, resolve
from vocoder_service.actor import CodecInfo, Decoded
from vocoder_service.busy import EncoderBusy
from vocoder_service.schedule import WindowSchedule

SPEC = FAMILIES["opuslm-dialogue"]
CODEC = CodecInfo(16_000, 320, 8, 1024, 10)


class Remote:
    """A method of an actor."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    async def remote(self, *arguments: Any) -> Any:
        return self._method(*arguments)


class Vocoder:
    """Says two bytes for a frame, and encodes a frame for each 20 ms."""

    def __init__(self, *, busy: bool = False) -> None:
        self.open, self.push = Remote(self._open), Remote(self._frames)
        self.finish = Remote(self._frames)
        self.encode = Remote(self._encode)
        self.abort = Remote(self._abort)
        self.live: set[str] = set()
        self.clips = 0
        self._busy = busy

    def _open(self, stream: str) -> None:
        self.live.add(stream)

    def _frames(self, stream: str, frames: Any) -> Decoded:
        assert stream in self.live
        return Decoded(b"" if frames is None else bytes(2 * len(frames)), 0.0)

    def _abort(self, stream: str) -> None:
        self.live.discard(stream)

    def _encode(self, samples: Any) -> Any:
        if self._busy:
            raise EncoderBusy("64 clips are waiting")
        self.clips += 1
        return np.zeros((len(samples) // 320, 9), np.int32)


class Engine:
    """Writes some text and some frames, and remembers what was asked."""

    def __init__(self, words: int = 4, frames: int = 30, max_length: int = 500) -> None:
        self.spec = SPEC
        self.max_length = max_length
        self.tokenizer = SimpleNamespace(encode=lambda text: [13448 + ord(c) for c in text])
        self.asked: list[SpeechRequest] = []
        self.closed = False
        self._words, self._frames = words, frames

    def prepare(self, request: SpeechRequest) -> Any:
        self.asked.append(request)
        resolved = resolve(request, self.spec, None)
        if len(resolved.prompt) > self.max_length:
            raise RequestError("prompt_ids", "too many rows")
        return resolved

    async def stream(self, request: Any, request_id: str) -> AsyncGenerator[Chunk, None]:
        try:
            for index in range(self._words):
                row = np.zeros((1, 9), np.int32)
                row[0, 0] = 13448 + index
                yield Chunk(row, row[:0], f"w{index} ")
            for index in range(self._frames):
                last = index == self._frames - 1
                code = np.full((1, 9), index, np.int32)
                yield Chunk(np.full((1, 9), 300, np.int32), code, "", "stop" if last else None)
        finally:
            self.closed = True


def vocoding(vocoder: Vocoder, schedule: WindowSchedule | None = None) -> Vocoding:
    first = Engine().spec.codec_first_stream
    return Vocoding(vocoder, CODEC, schedule or WindowSchedule(), first)
