"""A front end over stand-ins for engine replicas that speak."""

from collections.abc import Sequence
from typing import Any

import httpx

from deployments.calls.messages import (
    Accepted,
    Dead,
    Finished,
    FirstAudio,
    SpeechCall,
    SpeechEvent,
    Utterance,
)
from deployments.front_end.ingress import create_app
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ServiceSettings
from tests.unit.deployments.stand_in import Events

PCM = bytes(range(200)) * 8
JSON = {"content-type": "application/json"}
GOOD: dict[str, Any] = {"model": "demo", "input": "Hello.", "voice": "rms"}
WAV = GOOD | {"response_format": "wav"}
HELLO = (Utterance("Hello."),)
CARD = ModelCard("demo", ("slt", "rms"), 1.5, "none")
Script = Sequence[SpeechEvent | Exception]
FIRST = FirstAudio(PCM[:600], prefill=0.02, frames=0.25, vocoder=0.0301)
SPOKEN: Script = (Accepted(7, 16_000), FIRST, PCM[600:], Finished("stop", 9, 21))


class StandIn:
    """Replays events, and keeps the calls it was sent."""

    def __init__(self, events: Script = SPOKEN, dead: Sequence[str] = ()) -> None:
        """
        Args:
            dead: replicas that get the first calls and have no engine any more.
        """
        self.events = events
        self.calls: list[SpeechCall] = []
        self._dead = list(dead)

    def speak(self, call: SpeechCall) -> Events[SpeechEvent]:
        self.calls.append(call)
        return Events([Dead(self._dead.pop(0))] if self._dead else self.events)

    async def check_health(self) -> None:
        for event in self.events:
            if isinstance(event, Exception):
                raise event


def client(engines: StandIn, *, raises: bool = False, card: ModelCard = CARD) -> httpx.AsyncClient:
    catalog = Catalog([ServedModel(card, engines)], ServiceSettings(), created=1)
    transport = httpx.ASGITransport(create_app(catalog), raise_app_exceptions=raises)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


def body(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}
