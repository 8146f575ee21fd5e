"""What the ingress tells a client when a replica refuses, fails or is not there."""

from __future__ import annotations

import math

from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    ReplicaUnavailableError,
)

from deployments.calls.messages import Refused
from deployments.front_end.errors import ApiError
from deployments.metrics.memory import is_shortage

_UNAVAILABLE = (RayActorError, DeploymentUnavailableError, ReplicaUnavailableError)
# Of the refusals after which a client should try again.
_CODES = {429: "rate_limit_exceeded", 503: "engine_unavailable"}
FAILURES = (*_UNAVAILABLE, BackPressureError, RayTaskError)


def refusal(refused: Refused, retry_after: int) -> ApiError:
    """A replica's refusal.

    Args:
        retry_after: seconds, for a client that is refused for lack of room, where the replica
            does not say.
    """
    if refused.retry_after is not None:
        retry_after = max(1, math.ceil(refused.retry_after))
    return ApiError(
        refused.status,
        refused.message,
        param=refused.param,
        code=_CODES.get(refused.status),
        retry_after=retry_after if refused.status in _CODES else None,
    )


def failure(error: Exception, retry_after: int) -> ApiError:
    """One of ``FAILURES``."""
    if isinstance(error, _UNAVAILABLE):
        return unavailable(retry_after)
    if isinstance(error, BackPressureError):
        return refusal(Refused(429, "too many requests are waiting"), retry_after)
    if is_shortage(error):
        return ApiError(
            503,
            "there was not enough memory for the request",
            code="out_of_memory",
            retry_after=retry_after,
        )
    return ApiError(500, "the request failed while it was generated")


def busy(retry_after: int) -> ApiError:
    """Replicas answer others, but have not come to this request in time."""
    return refusal(Refused(429, "the engines are busy, none has taken the request"), retry_after)


def unavailable(retry_after: int) -> ApiError:
    """No replica answers."""
    return refusal(Refused(503, "no engine is ready"), retry_after)
