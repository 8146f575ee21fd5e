"""The HTTP front end: a Ray Serve deployment around a FastAPI application."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments import errors
from deployments.catalog import Catalog, ServedModel
from deployments.messages import SpeechCall
from deployments.middleware import BodyLimit, RequestId
from deployments.model_card import ModelCard
from deployments.routes import health, models, page, speech
from deployments.settings import ServiceSettings


def create_app(catalog: Catalog) -> FastAPI:
    """The HTTP application over a catalog of models."""
    app = FastAPI(title="speechlm-serve")
    app.add_middleware(BodyLimit, max_bytes=catalog.service.max_body_bytes)
    app.add_middleware(RequestId)
    errors.install(app)
    for module in (speech, models, health):
        app.include_router(module.router(catalog))
    app.include_router(page.router())
    return app


class ServeEngines:
    """The ``Engines`` behind a Serve handle."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle
        self._streams = handle.options(stream=True)

    def speak(self, call: SpeechCall) -> Any:
        return self._streams.speak.remote(call)

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
    ) -> None:
        """
        Args:
            engines: of each card's model.
            created: Unix time in seconds of the deployment.
        """
        models = [
            ServedModel(card, ServeEngines(handle))
            for card, handle in zip(cards, engines, strict=True)
        ]
        self._catalog = Catalog(models, service, created)

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._catalog)
