"""``WS /v1/audio/speech/stream``: text in pieces, audio while the text still arrives."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Response, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from deployments.front_end import strict_json
from deployments.front_end.errors import ApiError, error_response
from deployments.front_end.strict_route import refuse_query
from deployments.models.catalog import Catalog
from deployments.speech import stream_messages as messages
from deployments.speech.session import SpeechSession
from deployments.validation import first_field

# RFC 6455: normal, going away, policy violation, internal error, try again later.
_NORMAL, _LEAVING, _REFUSED, _FAILED, _BUSY = 1000, 1001, 1008, 1011, 1013
_PATH = "/v1/audio/speech/stream"
_log = logging.getLogger(__name__)
_CLOSES = {429: _BUSY, 503: _BUSY, 500: _FAILED}


def router(catalog: Catalog) -> APIRouter:
    """The endpoint over one catalog."""
    routes = APIRouter(tags=["audio"])

    @routes.get(_PATH, include_in_schema=False)
    async def no_websocket() -> Response:
        return error_response(426, f"{_PATH} is a WebSocket", headers={"upgrade": "websocket"})

    @routes.websocket(_PATH)
    async def speak_while_text_arrives(socket: WebSocket) -> None:
        await socket.accept()
        try:
            refuse_query(socket)
            await _Connection(socket, catalog).run()
        except WebSocketDisconnect:
            pass
        except ApiError as error:
            await _refuse(socket, error)
        except Exception:
            _log.exception("a conversation failed")
            await _refuse(socket, ApiError(500, "internal error"))

    return routes


async def _refuse(socket: WebSocket, error: ApiError) -> None:
    socket.state.audit.denied(error)
    with suppress(WebSocketDisconnect):
        await socket.send_json(messages.failed(error.body()))
        await socket.close(_CLOSES.get(error.status, _REFUSED))


class _Connection:
    """One socket: reads what the client says while its session speaks."""

    def __init__(self, socket: WebSocket, catalog: Catalog) -> None:
        self._socket = socket
        self._catalog = catalog
        self._started = False
        self._ended = False  # no more text is to come
        self._stopping = False  # since the service is to end

    async def run(self) -> None:
        """
        Raises:
            ApiError: the session cannot begin or go on.
            WebSocketDisconnect: the client has left.
        """
        draining = asyncio.create_task(self._socket.state.drain.wait())
        try:
            await self._converse(draining)
            leaving = draining.done()
        finally:
            await _end(draining)
        await self._socket.close(_LEAVING if leaving else _NORMAL)

    async def _converse(self, draining: asyncio.Task[None]) -> None:
        """
        Args:
            draining: ends when the conversation shall: it is as if the client had said so.
        """
        idle_seconds = self._catalog.service.stream_idle_seconds
        reading = asyncio.create_task(self._receive())
        try:
            await asyncio.wait(
                {reading, draining}, timeout=idle_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not reading.done():
                return
            start = reading.result()
        finally:
            await _end(reading)
        assert isinstance(start, messages.Start)
        self._started = True
        model = self._catalog.model(start.model)
        session = SpeechSession(
            start,
            self._catalog,
            await self._catalog.voices.speaker(model, start.voice_id),
            self._socket.state.request_id,
            self._socket.state.audit,
            self._socket.state.priority,
            self._socket.state.standing,
            self._send_json,
            self._socket.send_bytes,
        )
        speaking = asyncio.create_task(session.speak())
        reading = asyncio.create_task(self._receive())
        heard = time.monotonic()
        try:
            while not speaking.done():
                await asyncio.wait(
                    {speaking, reading} if self._ended else {speaking, reading, draining},
                    timeout=_until_idle(session, heard, idle_seconds),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if reading.done():
                    speaking = await self._obey(reading, session, speaking)
                    reading = asyncio.create_task(self._receive())
                    heard = time.monotonic()
                elif draining.done() and not self._ended:
                    self._stopping = True
                    await self._flush(session, end=True)
                elif _until_idle(session, heard, idle_seconds) <= 0:
                    break
            if speaking.done():
                speaking.result()
        finally:
            await _end(speaking, reading)

    async def _obey(
        self,
        reading: asyncio.Task[messages.ClientMessage],
        session: SpeechSession,
        speaking: asyncio.Task[None],
    ) -> asyncio.Task[None]:
        """Does what a message says; the task that speaks from now on."""
        try:
            message = reading.result()
            if isinstance(message, messages.Cancel):
                await _end(speaking)
                session.forget()
                self._ended = False
                await self._send_json(messages.cancelled())
                return asyncio.create_task(session.speak())
            if self._stopping:
                # All that came before is spoken to its end as it is.
                if not isinstance(message, messages.End):
                    self._socket.state.drain.require_open(self._catalog.service.retry_after_seconds)
            elif isinstance(message, messages.Text):
                await session.add(message.text)
            else:
                await self._flush(session, end=isinstance(message, messages.End))
        except ApiError as error:  # of this message; the conversation goes on
            await self._send_json(messages.failed(error.body()))
        return speaking

    async def _flush(self, session: SpeechSession, *, end: bool) -> None:
        self._ended = self._ended or end
        await session.flush(end=end)

    async def _receive(self) -> messages.ClientMessage:
        received = await self._socket.receive()
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received.get("code", 1005))
        text = received.get("text") or ""
        try:
            given = strict_json.parse(text)
            self._require_turn(given)
            return messages.CLIENT_MESSAGE.validate_json(text)
        except strict_json.NotJson as error:
            raise ApiError(
                400, f"a message must be a JSON object, sent as text: it {error}"
            ) from error
        except ValidationError as error:
            field, message = _first_field(error, given)
            raise ApiError(400, message, param=field) from error

    def _require_turn(self, given: Any) -> None:
        kind = given.get("type") if isinstance(given, dict) else None
        if not self._started and kind != "start":
            raise ApiError(400, "type: the first message must be start", param="type")
        if self._started and kind == "start":
            raise ApiError(400, "type: start comes only once", param="type")

    async def _send_json(self, data: dict[str, Any]) -> None:
        await self._socket.send_json(data)


def _until_idle(session: SpeechSession, heard: float, idle_seconds: float) -> float:
    """Seconds until nothing has been said or spoken for ``idle_seconds``, at the earliest.

    Args:
        heard: when the last message came, by ``time.monotonic``.
    """
    since = session.idle_since
    if since is None:
        return idle_seconds
    return max(since, heard) + idle_seconds - time.monotonic()


def _first_field(error: ValidationError, given: Any) -> tuple[str | None, str]:
    errors = error.errors()
    if errors[0]["type"] == "json_invalid":  # half of a surrogate pair, which Python's takes
        return None, f"a message must be a JSON object, sent as text: {errors[0]['ctx']['error']}"
    if errors[0]["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return "type", "type: must be text, flush, cancel or end"
    # The locations begin with the type.
    return first_field([{**e, "loc": e["loc"][1:]} for e in errors], given)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
