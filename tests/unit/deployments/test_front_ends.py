"""Where front ends and the limiter run."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.builder import build


@pytest.mark.parametrize(
    ("service", "options"),
    [
        ({}, {"num_cpus": 0}),
        ({"front_end_resource": "data"}, {"num_cpus": 0, "resources": {"data": 1}}),
    ],
    ids=["anywhere", "where their files are"],
)
def test_the_limiter_runs_where_front_ends_do(
    service: dict[str, Any], options: dict[str, Any]
) -> None:
    model = {"id": "demo-voice", "path": "demo_voice/model", "engine": {"dtype": "float32"}}
    limits = {"limits": {"concurrent_requests": 1}}
    ingress = build({"models": [model], "service": service, "guards": limits})._bound_deployment
    assert ingress.ray_actor_options == options
    (limiter,) = ingress._deployment_config.deployment_actors
    assert limiter.actor_options == options
