"""From settings to a Ray Serve application: what ``serve_config.yaml`` names."""

from __future__ import annotations

import time
from typing import Any

import ray
from ray import serve
from ray.serve import Application
from ray.serve.config import DeploymentActorConfig, RequestRouterConfig

from deployments.autoscaling import REPLICA_ENVIRONMENT, config_of
from deployments.front_end.ingress import Ingress
from deployments.guards.limiter import NAME, LimiterActor
from deployments.guards.settings import GuardSettings
from deployments.models.audio import ModelAudio
from deployments.models.card import ModelCard
from deployments.models.directory import find
from deployments.replica.engine_deployment import EngineReplica
from deployments.routing import REPORT_SECONDS, ROUTER
from deployments.settings import INGRESS, ModelSettings, Settings

# Replicas and front ends refuse what they cannot take themselves, at once and exactly. Serve's own
# limits only have to be out of their way, and to bound what waits while no replica is there.
_REFUSALS_AT_ONCE = 256
_MOST_QUEUED = 4096


def build(args: dict[str, Any]) -> Application:
    """One ingress, with a limiter if there are limits, and per model a deployment of engines.

    Args:
        args: as in ``serve_config.yaml``.

    Raises:
        pydantic.ValidationError: they are not ``Settings``.
        SpecError: a model's codec says nothing of its audio.
        ValueError: a model is not there or not complete, there is no such family, a setting does
            not fit, or a model has no such voice.
    """
    settings = Settings.model_validate(args)
    cards = [_card(model, index) for index, model in enumerate(settings.models)]
    guards = settings.guards
    engines = [
        _engines(model, card, settings) for model, card in zip(settings.models, cards, strict=True)
    ]
    ingress = serve.deployment(Ingress).options(
        name=INGRESS,
        num_replicas=settings.service.ingress_replicas,
        max_ongoing_requests=guards.max_http_requests + guards.max_websockets + _REFUSALS_AT_ONCE,
        graceful_shutdown_timeout_s=settings.service.drain_seconds,
        ray_actor_options=settings.service.front_end_options,
        health_check_period_s=2,
        health_check_timeout_s=10,
        max_constructor_retry_count=2,
        max_surge_percent=100,
        logging_config=_logging(guards),
        deployment_actors=[_limiter(settings)] if guards.limited else [],
    )
    return ingress.bind(
        cards, engines, settings.service, int(time.time()), guards, settings.tracing
    )


def _card(model: ModelSettings, index: int) -> ModelCard:
    directory, spec = find(model, index)
    return ModelCard.of(model, spec, ModelAudio.of(directory), directory, index=index)


def _limiter(settings: Settings) -> DeploymentActorConfig:
    return DeploymentActorConfig(
        name=NAME,
        actor_class=ray.remote(LimiterActor),
        init_args=(settings.guards,),
        actor_options=settings.service.front_end_options,
    )


def _logging(guards: GuardSettings) -> dict[str, Any]:
    return {"encoding": guards.log_format.upper()}


def _number(model: ModelSettings) -> dict[str, Any]:
    """How many replicas, and how a request finds one of them."""
    if model.autoscaling is None:
        return {"num_replicas": model.replicas}
    return {"num_replicas": "auto", "autoscaling_config": config_of(model.autoscaling)}


def _actor(model: ModelSettings) -> dict[str, Any]:
    options: dict[str, Any] = {"num_cpus": model.engine.cpus, "num_gpus": model.engine.gpus}
    if model.autoscaling is not None:
        options["runtime_env"] = {"env_vars": REPLICA_ENVIRONMENT}
    return options


def _router(model: ModelSettings, card: ModelCard) -> RequestRouterConfig:
    if model.most_replicas == 1:  # nothing to choose, and nothing that need be reported
        return RequestRouterConfig()
    assert card.audio is not None
    return RequestRouterConfig(
        request_router_class=ROUTER,
        request_router_kwargs={
            "rows": model.engine.max_rows,
            "cfg_scale": card.cfg_scale,
            "samples_per_row": card.audio.samples_per_row,
        },
        request_routing_stats_period_s=REPORT_SECONDS,
    )


def _engines(model: ModelSettings, card: ModelCard, settings: Settings) -> Application:
    deployment = serve.deployment(EngineReplica).options(
        name=model.deployment,
        **_number(model),
        max_ongoing_requests=model.max_concurrent_requests
        + model.admission.max_waiting
        + _REFUSALS_AT_ONCE,
        max_queued_requests=_MOST_QUEUED,
        placement_group_bundles=[model.bundle],
        ray_actor_options=_actor(model),
        health_check_period_s=2,
        health_check_timeout_s=10,
        graceful_shutdown_timeout_s=settings.service.drain_seconds,
        max_constructor_retry_count=2,
        max_surge_percent=model.surge_percent,
        request_router_config=_router(model, card),
        logging_config=_logging(settings.guards),
    )
    return deployment.bind(model, settings.tracing)
