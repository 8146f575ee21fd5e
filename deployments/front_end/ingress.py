"""The HTTP front end: a Ray Serve deployment around a FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import ray
from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments import tracing
from deployments.calls.answer_messages import AnswerCall
from deployments.calls.events import Pulse, ReplicaEvents
from deployments.calls.messages import SpeechCall
from deployments.front_end import errors, unknown_url
from deployments.front_end.openapi import ERRORS, DescribedApp
from deployments.guards import exposure, logs
from deployments.guards.key_source import plain_keys
from deployments.guards.limiter import ServeLimiter
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.metrics import emit
from deployments.metrics.sinks import RaySink
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.routes import (
    chat,
    docs,
    health,
    models,
    page,
    speech,
    speech_stream,
    transcriptions,
    voices,
)
from deployments.settings import ServiceSettings, TracingSettings


def create_app(catalog: Catalog, guards: Guards | None = None) -> FastAPI:
    """The HTTP application over a catalog of models.

    Args:
        guards: ended with the application; None: nobody needs a key or has limits.
    """
    guards = guards or Guards(GuardSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await guards.end()
        tracing.end()

    app = DescribedApp(
        title="speechlm-serve",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # what generated clients call it
    )
    guards.install(app, catalog.service)
    errors.install(app)
    unknown_url.install(app)
    for module in (chat, transcriptions, voices, speech, speech_stream, models, health):
        app.include_router(module.router(catalog), responses=ERRORS)
    for module in (page, docs):
        app.include_router(module.router(), include_in_schema=False)
    return app


class ServeEngines:
    """The ``Engines`` behind a Serve handle."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle
        self._streams = handle.options(stream=True)
        self._pulse = Pulse()
        self._name = ray.get_runtime_context().get_actor_name()

    def speak(self, call: SpeechCall) -> ReplicaEvents:
        return ReplicaEvents(self._streams.speak.remote(call, self._name), self._pulse)

    def answer(self, call: AnswerCall) -> ReplicaEvents:
        return ReplicaEvents(self._streams.answer.remote(call, self._name), self._pulse)

    def encode(self, samples: Any) -> Any:
        return self._handle.encode.remote(samples)

    def check_health(self) -> Any:
        return self._handle.check_health.remote()


@serve.ingress()
class Ingress:
    """Validates requests, hands them to engine replicas and sends their audio."""

    def __init__(
        self,
        cards: list[ModelCard],
        engines: list[DeploymentHandle],
        service: ServiceSettings,
        created: int,
        guards: GuardSettings,
        spans: TracingSettings,
    ) -> None:
        """
        Args:
            engines: of each card's model.
            created: Unix time in seconds of the deployment.

        Raises:
            ValueError: the keys cannot be used, or there are none and others could come in; or
                the audit log cannot be written.
        """
        logs.configure(plain_keys())
        emit.use(RaySink())
        tracing.begin(spans, "ingress")
        exposure.check_proxy(guards)
        models = [
            ServedModel(card, served, served)
            for card, served in zip(cards, map(ServeEngines, engines), strict=True)
        ]
        self._catalog = Catalog(models, service, created)
        self._guards = Guards.begin(guards, service, ServeLimiter())

    async def drain(self) -> None:
        """Takes no new requests from now on, and lets WebSockets come to their ends.

        Serve does not call it: before it stops a front end it sends requests to others. It is for
        the end of the whole service (``deployments.draining``).
        """
        self._guards.drain.begin()

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._catalog, self._guards)
