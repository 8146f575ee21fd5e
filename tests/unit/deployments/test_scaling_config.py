"""What Serve is told of routers, numbers of replicas and new versions, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from ray.serve._private.autoscaling_state import _resolve_policy_callable
from ray.serve._private.common import TimeStampedValue
from ray.serve.autoscaling_policy import _apply_autoscaling_config
from ray.serve.config import AutoscalingContext

from cfg_pairing.autoscaling import ReplicaSignals
from deployments.autoscaling import config_of
from deployments.builder import build
from deployments.settings import AutoscalingSettings


def engines(**model: Any) -> Any:
    """The deployment of the engines of one model."""
    settings = {"id": "a", "path": "tiny:demo", **model}
    application = build({"models": [settings]})
    [bound] = application._bound_deployment.init_args[1]
    return bound._bound_deployment


def test_one_replica_needs_no_router() -> None:
    router = engines()._deployment_config.request_router_config
    assert "RowRouter" not in str(router.request_router_class)


def test_several_replicas_have_one_that_knows_their_rows() -> None:
    deployment = engines(replicas=2, engine={"max_rows": 24})
    router = deployment._deployment_config.request_router_config
    assert router.request_router_class == "deployments.routing:RowRouter"
    assert router.request_router_kwargs == {
        "rows": 24,
        "cfg_scale": 1.0,
        "samples_per_row": 320,
    }
    assert router.get_request_router_class().__name__ == "RowRouter"


def test_serve_lets_in_all_that_may_wait() -> None:
    deployment = engines(max_concurrent_requests=10, admission={"max_waiting": 500})
    assert deployment._deployment_config.max_ongoing_requests > 510


@pytest.mark.parametrize("percent", [0, 50])
def test_new_versions_come_as_the_model_says(percent: int) -> None:
    deployment = engines(surge_percent=percent)
    assert deployment._deployment_config.max_surge_percent == percent


def test_replicas_that_scale_report_often() -> None:
    deployment = engines(autoscaling={"min_replicas": 0, "max_replicas": 3})
    config = deployment._deployment_config.autoscaling_config
    assert (config.min_replicas, config.initial_replicas, config.max_replicas) == (0, 1, 3)
    variables = deployment.ray_actor_options["runtime_env"]["env_vars"]
    assert variables == {"RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "2"}


class Controller:
    """Serve's controller, as far as it asks a policy: with the policy as it gets it, in bytes."""

    def __init__(self, settings: AutoscalingSettings) -> None:
        self.config = config_of(settings)
        self.policy = _apply_autoscaling_config(_resolve_policy_callable(self.config.policy))
        self.state: dict[str, Any] = {}
        self.target = 1

    def ask(self, now: float, replicas: list[ReplicaSignals], queued: float = 0) -> int:
        names = ReplicaSignals.__dataclass_fields__
        series = {
            name: {i: [TimeStampedValue(now, getattr(r, name))] for i, r in enumerate(replicas)}
            for name in names
        }
        context = AutoscalingContext(
            deployment_id=None,
            deployment_name="engine",
            app_name="speechlm",
            current_num_replicas=len(replicas),
            target_num_replicas=self.target,
            running_replicas=[],
            total_num_requests=queued + sum(replica.rows for replica in replicas),
            total_queued_requests=queued,
            aggregated_metrics=None,
            raw_metrics=series,
            capacity_adjusted_min_replicas=self.config.min_replicas,
            capacity_adjusted_max_replicas=self.config.max_replicas,
            policy_state=self.state,
            last_scale_up_time=None,
            last_scale_down_time=None,
            current_time=now,
            config=self.config,
        )
        self.target, self.state = self.policy(context)
        return self.target


def test_serve_scales_as_the_policy_says() -> None:
    controller = Controller(AutoscalingSettings(max_replicas=4, up_seconds=3, down_seconds=60))
    busy = ReplicaSignals(rows=28, waiting_rows=12, capacity=16)
    idle = ReplicaSignals(rows=0, waiting_rows=0, capacity=16)
    asked = [controller.ask(now, [busy]) for now in range(6)]
    assert (asked[0], asked[-1]) == (1, 3)
    asked = [controller.ask(now, [idle] * 3) for now in range(6, 200)]
    assert (asked[30], asked[-1]) == (3, 1)


def test_serve_goes_to_none_and_comes_back() -> None:
    controller = Controller(
        AutoscalingSettings(min_replicas=0, max_replicas=4, down_seconds=60, idle_seconds=100)
    )
    idle = ReplicaSignals(rows=0, waiting_rows=0, capacity=16)
    assert [controller.ask(now, [idle]) for now in range(0, 200, 10)][-1] == 0
    assert controller.ask(300, []) == 0
    assert controller.ask(310, [], queued=1) == 1
    assert controller.ask(311, []) == 1, "while it starts"
