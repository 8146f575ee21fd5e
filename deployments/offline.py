"""Requests from a file of JSON lines, without Ray: what ``speechlm generate`` does."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from deployments.audio import wav
from deployments.audio.joining import Joiner
from deployments.validation import first_field
from engine_adapter.engine import SpeechEngine
from engine_adapter.request import GenerationError, RequestError, Result, SpeechRequest
from engine_adapter.spec import Output
from vocoder_service.vocoder import Vocoder

MAX_IN_FLIGHT = 4096
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")

Ids = list[int | list[int]]


class RequestLine(BaseModel):
    """One line of the input; see ``SpeechRequest`` for all but ``id``."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    id: str | int
    text: str | None = None
    prompt_ids: Ids | None = None
    voice: str | None = None
    output: Output = "audio"
    cfg_scale: float | None = None
    unconditional_ids: Ids | None = None
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_frames: int | None = None
    max_text_tokens: int | None = None

    def request(self) -> SpeechRequest:
        """The line as the engine takes it."""
        return SpeechRequest(**self.model_dump(exclude={"id"}))


@dataclass(frozen=True)
class BadLine:
    """A line that is no request: its id where one could be read, and what is wrong."""

    id: str | int | None
    error: str


def parse(line: bytes, number: int) -> RequestLine | BadLine:
    """One line of the input.

    Args:
        number: of the line in its file, from 1.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadLine(None, f"line {number}: not JSON: {error}")
    if not isinstance(data, dict):
        return BadLine(None, f"line {number}: not a JSON object")
    try:
        return RequestLine.model_validate(data)
    except ValidationError as error:
        found = data.get("id")
        usable = isinstance(found, str | int) and not isinstance(found, bool)
        return BadLine(found if usable else None, first_field(error.errors(), data)[1])


def wav_name(request_id: str | int) -> str:
    """A file name for an id: the id itself where that is a plain name, else a unique one."""
    name = str(request_id)
    if not _SAFE_NAME.fullmatch(name):
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:80] + "-" + digest
    return f"{name}.wav"


class Answers:
    """Answers lines with one engine, many at a time, in the order of the lines."""

    def __init__(self, engine: SpeechEngine, vocoder: Vocoder | None, wav_dir: Path | None) -> None:
        """
        Args:
            vocoder: for the WAV files; None if none are wanted.
            wav_dir: an existing directory for them.
        """
        self._engine = engine
        self._vocoder = vocoder
        self._wav_dir = wav_dir
        # One thread: torch keeps workers for each thread that calls it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vocoder")
        self._ids: set[str] = set()
        self.frames = 0
        self.failed = 0

    async def answer(self, lines: Iterable[bytes]) -> AsyncIterator[dict[str, Any]]:
        """One record per line that is not blank, as soon as all before it are done.

        Raises:
            EngineUnavailable: the engine is dead. What is wrong with a single request ends
                in its record.
        """
        pending: deque[asyncio.Task[dict[str, Any]]] = deque()
        try:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                pending.append(asyncio.create_task(self._answer(parse(line, number))))
                if len(pending) == MAX_IN_FLIGHT:
                    yield await pending.popleft()
            while pending:
                yield await pending.popleft()
        finally:
            for task in pending:
                task.cancel()

    async def _answer(self, line: RequestLine | BadLine) -> dict[str, Any]:
        if isinstance(line, BadLine):
            return self._failure(line.id, None, line.error)
        if str(line.id) in self._ids:
            return self._failure(line.id, line.seed, f"id: {line.id!r} is an earlier line's")
        self._ids.add(str(line.id))
        try:
            result = await self._engine.generate(self._engine.prepare(line.request()))
        except (RequestError, GenerationError) as error:
            return self._failure(line.id, line.seed, str(error))
        if self._wav_dir is not None and "audio" in line.output:
            path = self._wav_dir / wav_name(line.id)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._write_wav, path, result)
        self.frames += len(result.codes)
        return {
            "id": line.id,
            "codes": result.codes.tolist(),
            "raw_ids": result.raw_ids.tolist(),
            "text": result.text,
            "finish_reason": result.finish_reason,
            "error": None,
            "seed": result.seed,
            "preemptions": result.preemptions,
        }

    def _failure(
        self, request_id: str | int | None, seed: int | None, error: str
    ) -> dict[str, Any]:
        self.failed += 1
        return {
            "id": request_id,
            "codes": [],
            "raw_ids": [],
            "text": "",
            "finish_reason": "error",
            "error": error,
            "seed": seed,
            "preemptions": 0,
        }

    def _write_wav(self, path: Path, result: Result) -> None:
        assert self._vocoder is not None
        codes = result.codes[:, self._engine.spec.codec_first_stream :]
        rate = self._vocoder.codec.sample_rate
        joiner = Joiner(rate)  # what the service does to its audio
        pcm = joiner.piece(self._vocoder.decode_all(codes).astype("<i2").tobytes())
        path.write_bytes(wav.file(rate, pcm + joiner.finish()))
