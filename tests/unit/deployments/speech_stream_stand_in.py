"""Engine replicas that answer ``/v1/audio/speech/stream``, and a client of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from starlette.testclient import TestClient, WebSocketTestSession

from deployments.calls.messages import (
    Accepted,
    Finished,
    FirstAudio,
    Refused,
    SpeechCall,
    SpeechEvent,
)
from deployments.front_end.ingress import create_app
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import InProcess

RATE = 24_000
CARD = ModelCard("demo", ("slt", "rms"), 1.5, "english", 60)
START = {"type": "start", "model": "demo", "voice": "slt", "seed": 5}
LOCAL = "ws://localhost/v1/audio/speech/stream"


class Events:
    """Two pieces of audio per utterance; an endless utterance, should its text say so."""

    def __init__(self, call: SpeechCall, refusals: list[Refused]) -> None:
        self.call = call
        self.cancelled = False
        self._events = self._script(refusals)

    async def _script(self, refusals: list[Refused]) -> AsyncIterator[SpeechEvent]:
        if refusals:
            yield refusals.pop(0)
            return
        yield Accepted(self.call.seed or 0, RATE)
        yield FirstAudio(b"\1\1" * RATE, 0.01, 0.1, 0.02)
        while "forever" in self.call.utterances[0].text:
            await asyncio.sleep(0.001)
            yield b"\2\2" * 10
        yield b"\3\3" * RATE
        yield Finished("stop", 10, 50)

    def __aiter__(self) -> AsyncIterator[SpeechEvent]:
        return self._events

    async def __anext__(self) -> SpeechEvent:
        return await anext(self._events)

    def cancel(self) -> None:
        self.cancelled = True


class StandIn:
    """Keeps the calls it was sent; refuses the first ones as it is told."""

    def __init__(self, *refusals: Refused) -> None:
        self.sent: list[Events] = []
        self._refusals = list(refusals)

    def speak(self, call: SpeechCall) -> Events:
        self.sent.append(Events(call, self._refusals))
        return self.sent[-1]

    @property
    def texts(self) -> list[str]:
        return [utterance.text for e in self.sent for utterance in e.call.utterances]

    async def check_health(self) -> None:
        return


@contextmanager
def connection(
    engines: StandIn, address: str = LOCAL, **settings: Any
) -> Iterator[WebSocketTestSession]:
    service = ServiceSettings(retry_after_seconds=1, **settings)
    catalog = Catalog([ServedModel(CARD, engines)], service, created=1)
    # The test client cancels an application that is still at work when its client leaves.
    with (
        TestClient(create_app(catalog)) as http,
        suppress(CancelledError),
        http.websocket_connect(address) as socket,
    ):
        yield socket


def say(socket: WebSocketTestSession, *texts: str) -> None:
    for text in texts:
        socket.send_json({"type": "text", "text": text})


def until(socket: WebSocketTestSession, last: str) -> tuple[list[dict[str, Any]], bytes]:
    """The messages up to the first of a type, and the audio between them."""
    said: list[dict[str, Any]] = []
    audio = b""
    while not said or said[-1]["type"] != last:
        message = socket.receive()
        if message.get("bytes") is not None:
            audio += message["bytes"]
        elif message["type"] == "websocket.close":
            raise AssertionError(f"closed with {message['code']} after {said}")
        else:
            said.append(json.loads(message["text"]))
    return said, audio


def assert_closes(socket: WebSocketTestSession, code: int = 1000) -> None:
    message = socket.receive()
    assert (message["type"], message["code"]) == ("websocket.close", code)


def guarded(settings: GuardSettings, engines: StandIn) -> tuple[TestClient, Guards]:
    service = ServiceSettings(retry_after_seconds=1, stream_idle_seconds=5)
    catalog = Catalog([ServedModel(CARD, engines)], service, created=1)
    guards = Guards.begin(settings, service, InProcess(), {})
    return TestClient(create_app(catalog, guards)), guards
