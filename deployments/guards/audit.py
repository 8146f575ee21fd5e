"""The audit log: one line of JSON for every guarded request, when it has ended."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cfg_pairing.admission import Priority
from deployments.audio.pcm import seconds_of
from deployments.front_end.errors import ApiError
from deployments.guards.paths import guarded, path_of
from deployments.metrics import requests

_AUDIO = "audio/"
_MOST_TEXT = 1 << 16  # characters of a WebSocket that are kept
_MOST_AUDIO = 128 << 20  # bytes that are
_FAILED = 1011  # a close by the service
_NORMAL_CLOSES = (1000, 1001, 1005)
_DEPARTURE_SECONDS = 1.0
_NO_ROOM = (429, 503)
_NOT_WRITTEN = frozenset(
    {"arrived", "asked", "priority", "refused", "trace", "keeps_text", "texts", "characters"}
)


@dataclass
class AuditRecord:
    """One request. Routes fill in what only they know, as ``request.state.audit``.

    Attributes:
        at: of its arrival, ISO 8601, UTC.
        text: what the client sent to be read; written only if the settings say so.
        output_seconds: audio made so far, also what the client is charged for.
        queue_seconds: from its arrival until an engine has accepted it.
        first_byte_seconds: from its arrival until the first byte of the answer's body.
        end: ``cancelled`` if the client left, ``deadline`` if its time was up, ``failed`` if
            the answer is not whole.
        audio: the body of an answer with audio, or all audio of a WebSocket, base64; only if the
            settings say so.
        cut: whether ``text`` or ``audio`` lacks what came later, as it was too much to keep.

    What follows is not written:
        arrived: by ``time.monotonic``.
        asked: since when the client waits for audio, until it has some.
        priority: its class, for what is measured of it.
        refused: the code of the error, if there was no room for it.
        trace: see ``deployments.tracing``.
        keeps_text: whether ``text`` will be written.
        texts, characters: pieces of it, and how many there are in them.
    """

    request_id: str
    method: str
    path: str
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    client: str | None = None
    key_id: str | None = None
    model: str | None = None
    voice: str | None = None
    input_characters: int | None = None
    text: str | None = None
    seed: int | None = None
    cfg_scale: float | None = None
    finish_reason: str | None = None
    output_seconds: float = 0.0
    output_bytes: int = 0
    queue_seconds: float | None = None
    first_byte_seconds: float | None = None
    total_seconds: float = 0.0
    status: int | None = None
    end: Literal["complete", "cancelled", "deadline", "failed"] = "failed"
    media_type: str | None = None
    audio: str | None = None
    cut: bool = False
    arrived: float = field(default_factory=time.monotonic)
    asked: float | None = field(default_factory=time.monotonic)
    priority: Priority = "standard"
    refused: str | None = None
    trace: str | None = None
    keeps_text: bool = False
    texts: list[str] = field(default_factory=list)
    characters: int = 0

    def add_text(self, text: str) -> None:
        """Takes the next piece of a text that has no limit."""
        if not self.keeps_text:
            return
        kept = text[: _MOST_TEXT - self.characters]
        if kept:
            self.texts.append(kept)
            self.characters += len(kept)
        self.cut = self.cut or len(kept) < len(text)

    def accepted(self, seed: int) -> None:
        """An engine has begun with it. Of several, the first counts.

        Args:
            seed: the one it uses.
        """
        if self.queue_seconds is None:
            self.seed, self.queue_seconds = seed, self.elapsed()

    @property
    def guided(self) -> bool:
        """Whether its audio is guided."""
        return self.cfg_scale is not None and self.cfg_scale > 1

    def elapsed(self) -> float:
        """Seconds since the request arrived."""
        return round(time.monotonic() - self.arrived, 6)

    def made(self, pcm: bytes, sample_rate: int) -> None:
        """Counts audio, 16-bit mono at ``sample_rate`` Hz."""
        if self.asked is not None:
            requests.first_audio(self, time.monotonic() - self.asked)
            self.asked = None
        self.output_seconds += seconds_of(pcm, sample_rate)

    def denied(self, error: ApiError) -> None:
        """It gets an error."""
        if error.status in _NO_ROOM:
            self.refused = error.code

    def fields(self, *, text: bool, audio: bool) -> dict[str, Any]:
        """What is written of it.

        Args:
            text, audio: whether they are.
        """
        hidden = {name for name, shown in (("text", text), ("audio", audio)) if not shown}
        hidden |= _NOT_WRITTEN
        return {name: value for name, value in asdict(self).items() if name not in hidden}


class Audit:
    """Gives every guarded request an ``AuditRecord``, and hands it on when the request ends."""

    def __init__(
        self,
        app: ASGIApp,
        write: Callable[[AuditRecord], None] | None,
        *,
        keep_text: bool = False,
        keep_audio: bool = False,
        client: str | None = None,
    ) -> None:
        """
        Args:
            client: who everybody is until a key says otherwise.
            write: gets every record; None: they serve only the limits.
            keep_text, keep_audio: whether texts and answers are kept until the end.
        """
        self._app = app
        self._write = write
        self._keep_text = keep_text
        self._keep_audio = keep_audio
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        state = scope["state"]
        record = AuditRecord(
            request_id=state["request_id"],
            method=scope.get("method", "WEBSOCKET"),
            path=path_of(scope),
            client=self._client,
            trace=state["trace"],
            keeps_text=self._keep_text,
        )
        state["audit"] = record
        watch = _Watch(record, self._keep_audio)
        try:
            await self._guarded(scope, receive, send, watch)
        except asyncio.CancelledError:
            watch.cancelled = True
            raise
        finally:
            watch.finish()
            if guarded(scope):
                requests.ended(record)
                if self._write is not None:
                    self._write(record)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, watch: _Watch) -> None:
        record: AuditRecord = scope["state"]["audit"]
        try:
            await self._app(scope, watch.receiving(receive), watch.sending(send))
        except Exception:
            record.status = record.status or 500
            if record.end != "deadline":
                await watch.departure(receive)
            raise


class _Watch:
    """Learns from the messages of a request what becomes of it."""

    def __init__(self, record: AuditRecord, keep_audio: bool) -> None:
        self.cancelled = False
        self._record = record
        self._complete = False
        self._keep_audio = keep_audio
        self._audio: list[bytes] = []
        self._audio_bytes = 0

    def finish(self) -> None:
        record = self._record
        record.total_seconds = record.elapsed()
        record.output_seconds = round(record.output_seconds, 6)
        if record.end != "deadline":
            if self._complete:
                record.end = "complete"
            elif self.cancelled:
                record.end = "cancelled"
        if record.texts:
            record.text = "".join(record.texts)
        if self._audio:
            record.audio = base64.b64encode(b"".join(self._audio)).decode()

    async def departure(self, receive: Receive) -> None:
        """Gives the news that the client has left a moment to arrive.

        Serve ends what a request has called before it ends the request itself, so that the first
        sign of a client's leaving may be that its audio breaks off.
        """
        if self.cancelled:
            return
        watched = self.receiving(receive)
        with suppress(TimeoutError):
            async with asyncio.timeout(_DEPARTURE_SECONDS):
                while not (await watched())["type"].endswith(".disconnect"):
                    pass

    def receiving(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cancelled = not self._complete
            elif message["type"] == "websocket.disconnect":
                self._complete = message.get("code") in _NORMAL_CLOSES
                self.cancelled = not self._complete
            return message

        return watched

    def sending(self, send: Send) -> Send:
        async def watched(message: Message) -> None:
            self._note(message)
            await send(message)

        return watched

    def _note(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        if kind == "http.response.start":
            self._record.status = message["status"]
            types = [v for k, v in message.get("headers", ()) if k.lower() == b"content-type"]
            self._record.media_type = types[0].decode("latin-1") if types else None
        elif kind == "http.response.body":
            self._data(message.get("body", b""), audio=self._has_audio())
            self._complete = not message.get("more_body", False)
        elif kind == "accept":
            self._record.status = 101
        elif kind == "send":
            binary = message.get("bytes")
            data = (message.get("text") or "").encode() if binary is None else binary
            self._data(data, audio=binary is not None)
        elif kind == "close":
            self._complete = message.get("code", 1000) != _FAILED

    def _has_audio(self) -> bool:
        """Whether an answer over HTTP has: where a voice was asked for, events and JSON do too."""
        record = self._record
        voiced = record.voice is not None or (record.media_type or "").startswith(_AUDIO)
        return record.status == 200 and voiced

    def _data(self, data: bytes, *, audio: bool) -> None:
        record = self._record
        if data and record.first_byte_seconds is None:
            record.first_byte_seconds = record.elapsed()
        record.output_bytes += len(data)
        if self._keep_audio and audio:
            self._audio_bytes += len(data)
            if self._audio_bytes > _MOST_AUDIO:
                record.cut = True
            else:
                self._audio.append(bytes(data))
