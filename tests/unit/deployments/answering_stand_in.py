"""A front end over stand-ins for engine replicas that answer."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from deployments.calls.answer_messages import AnswerCall, Answered, AnswerEvent, TextPiece
from deployments.calls.messages import Accepted
from deployments.front_end.ingress import create_app
from deployments.guards.runtime import Guards
from deployments.models.audio import ModelAudio
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ModelSettings, ServiceSettings
from engine_adapter.families import FAMILIES
from tests.unit.deployments.stand_in import Events

RATE = 16_000
PCM = (np.arange(3200) % 200).astype("<i2").tobytes()
CODES = np.arange(18, dtype=np.int32).reshape(2, 9)
Script = Sequence[AnswerEvent | Exception]
SPOKEN: Script = (
    Accepted(7, RATE),
    TextPiece("Good "),
    TextPiece("morning."),
    PCM,
    PCM,
    Answered("stop", 40, 10, 3, 2, CODES),
)
WRITTEN: Script = (
    Accepted(7, RATE),
    TextPiece(" Good"),
    TextPiece(" morning. "),
    Answered("stop", 40, 10, 3, 0, CODES[:0]),
)


class StandIn:
    """Replays events, and keeps the calls it was sent."""

    def __init__(self, events: Script) -> None:
        self.events = events
        self.calls: list[AnswerCall] = []
        self.sent: list[Events[AnswerEvent]] = []
        self.clips: list[Any] = []
        self.encoding_fails: Exception | None = None
        self._hung: list[asyncio.Future[Any]] | None = None
        self._healthy = True

    def speak(self, call: Any) -> Any:
        raise AssertionError("nothing is spoken here")

    def answer(self, call: AnswerCall) -> Events[AnswerEvent]:
        self.calls.append(call)
        self.sent.append(Events(self.events))
        return self.sent[-1]

    def encode(self, samples: Any) -> asyncio.Future[Any]:
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.clips.append(samples)
        if self._hung is not None:
            self._hung.append(response)
        elif self.encoding_fails is not None:
            response.set_exception(self.encoding_fails)
        else:
            response.set_result(CODES)
        return response

    def check_health(self) -> asyncio.Future[None]:
        response: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._healthy:
            response.set_result(None)
        return response

    def hang(self, *, healthy: bool = False) -> list[asyncio.Future[Any]]:
        """Nothing that is to be encoded is, from now on; what has been asked.

        Args:
            healthy: whether there is a replica all the same.
        """
        self._hung, self._healthy = [], healthy
        return self._hung


class Front:
    """A front end with the models ``demo``, ``bagpiper``, ``opuslm`` and ``dialogue``; the second
    lacks its audio encoder."""

    def __init__(
        self,
        store: Path,
        events: Script | StandIn = SPOKEN,
        guards: Guards | None = None,
        **service: Any,
    ) -> None:
        self.engines = events if isinstance(events, StandIn) else StandIn(events)
        models = []
        for name, family in (
            ("demo", "demo"),
            ("bagpiper", "bagpiper"),
            ("opuslm", "opuslm"),
            ("dialogue", "opuslm-dialogue"),
        ):
            settings = ModelSettings(id=name, path="nowhere")
            spec = FAMILIES[family]
            directory = store.parent if spec.hears_embeddings else None
            card = ModelCard.of(
                settings, spec, ModelAudio(RATE, f"encoder-{name}", 320, 320), directory
            )
            models.append(ServedModel(card, self.engines, self.engines))
        self.catalog = Catalog(models, ServiceSettings(store=str(store), **service), created=1)
        self.app = create_app(self.catalog, guards)
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    @property
    def call(self) -> AnswerCall:
        """The only call."""
        [call] = self.engines.calls
        return call


def wav(samples: Any, rate: int = RATE) -> bytes:
    """A WAV file of float samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def tone(seconds: float, rate: int = RATE) -> Any:
    """A clip in which something is heard."""
    return 0.3 * np.sin(2 * np.pi * 220 * np.arange(int(seconds * rate)) / rate)
