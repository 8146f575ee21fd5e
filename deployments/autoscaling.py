"""Serve's side of scaling: its configuration, and the policy in its controller.

Serve asks the policy about ten times a second, in its controller, which gets this module as
bytes and imports the rest. The policy, ``cfg_pairing.autoscaling``, remembers through Serve.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ray.serve.config import AutoscalingConfig, AutoscalingContext, AutoscalingPolicy

from cfg_pairing.autoscaling import ReplicaSignals, ScalingPolicy, ScalingState, decide
from deployments.settings import AutoscalingSettings

_POLICY = "deployments.autoscaling:RowScaling"
_REPORT_SECONDS = 2
_LOOK_BACK_SECONDS = 12  # only the last value counts; Serve wants more than ten
REPLICA_ENVIRONMENT = {"RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": str(_REPORT_SECONDS)}
"""Of replicas: how often they report what ``signals_of`` reads."""
_STATE = "speechlm"


class RowScaling:
    """The policy as Serve calls it."""

    def __init__(self, **numbers: Any) -> None:
        """
        Args:
            numbers: those of a ``ScalingPolicy``.
        """
        self._policy = ScalingPolicy(**numbers)

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """The number of replicas, and what is to be remembered."""
        state: ScalingState | None = context.policy_state.get(_STATE)
        decision, state = decide(
            self._policy,
            signals_of(context.raw_metrics or {}),
            context.total_queued_requests or 0,
            context.target_num_replicas,
            context.current_time,
            state,
        )
        return decision, {_STATE: state}


def signals_of(metrics: dict[str, dict[Any, Any]]) -> list[ReplicaSignals]:
    """The latest signals of all replicas that have reported.

    Args:
        metrics: by name, then by replica, Serve's series of what
            ``EngineReplica.record_autoscaling_stats`` gave; there may be others.
    """
    names = ReplicaSignals.__dataclass_fields__
    replicas = set.intersection(*(set(metrics.get(name, ())) for name in names))
    return [
        ReplicaSignals(**{name: metrics[name][replica][-1].value for name in names})
        for replica in sorted(replicas, key=str)
    ]


def config_of(settings: AutoscalingSettings) -> AutoscalingConfig:
    """Serve's configuration. Its own delays are off: the policy has others."""
    return AutoscalingConfig(
        min_replicas=settings.min_replicas,
        initial_replicas=max(1, settings.min_replicas),
        max_replicas=settings.max_replicas,
        upscale_delay_s=0,
        downscale_delay_s=0,
        look_back_period_s=_LOOK_BACK_SECONDS,
        policy=AutoscalingPolicy(policy_function=_POLICY, policy_kwargs=asdict(settings.policy)),
    )
