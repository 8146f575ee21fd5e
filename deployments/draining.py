"""The end of the service on this machine: nobody comes in, and whoever is being answered is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import ray
from ray import serve
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.serve._private.client import ServeControllerClient
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from deployments.settings import INGRESS

_POLL_SECONDS = 0.5
_ANSWER_SECONDS = 5.0  # of Serve's actors, on a busy machine
_SILENCE_SECONDS = 60.0  # longer than it takes to replace one of them


def drain(client: ServeControllerClient, applications: Sequence[str], seconds: float) -> None:
    """Has new requests refused, and returns when all answers are sent, or ``seconds`` later.

    Then nothing listens any more: without its applications, Serve's proxy would tell clients that
    what they ask for does not exist.

    Args:
        applications: of ``builder.build``, by name.
    """
    front_ends = [serve.get_deployment_handle(INGRESS, name) for name in applications]
    began = heard = time.monotonic()
    while (now := time.monotonic()) < min(began + seconds, heard + _SILENCE_SECONDS):
        try:
            # Again each time: what dies meanwhile is replaced by one that knows nothing of it.
            if _drained(front_ends, _proxies(client)):
                break
            heard = now
        except (RayError, RayServeException, TimeoutError):
            pass  # of those that are being replaced
        time.sleep(_POLL_SECONDS)
    with suppress(RayError):
        for proxy in _proxies(client):
            ray.kill(proxy)


def _drained(front_ends: list[DeploymentHandle], proxies: list[ActorHandle]) -> bool:
    """Tells all that the end has come; whether nothing is being sent any more.

    A proxy knows that best: it holds what clients have not read yet.
    """
    for front_end in front_ends:
        front_end.broadcast("drain").results(timeout_s=_ANSWER_SECONDS)
    for proxy in proxies:
        proxy.update_draining.remote(True)
    return all(ray.get([p.is_drained.remote() for p in proxies], timeout=_ANSWER_SECONDS))


def _proxies(client: ServeControllerClient) -> list[ActorHandle]:
    """Serve's HTTP proxies."""
    proxies = ray.get(client._controller.get_proxies.remote(), timeout=_ANSWER_SECONDS)
    return list(proxies.values())
