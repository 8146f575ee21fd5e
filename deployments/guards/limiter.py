"""The limiter as an actor that Serve keeps for all front ends together."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Protocol

from ray import serve
from ray.actor import ActorHandle
from ray.exceptions import RayActorError

from deployments.guards import logs
from deployments.guards.limits import Decision, Denied, Granted, LeaseReport, Limiter
from deployments.guards.settings import ClientLimits, GuardSettings
from deployments.guards.usage import Usage

NAME = "limiter"


class RemoteLimiter(Protocol):
    """The limiter, as a front end uses it."""

    async def acquire(
        self, front_end: str, request: LeaseReport, limits: ClientLimits
    ) -> Decision: ...

    async def go_on(self, request: LeaseReport, limits: ClientLimits) -> Granted | Denied: ...

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None: ...


class LimiterActor:
    """One limiter for all front ends.

    It is a process of its own, so that no front end is special. If it dies, Serve starts another;
    until that one answers, requests with limits get 503. An actor and not a deployment, since a
    call of an actor is several times faster.
    """

    def __init__(self, settings: GuardSettings) -> None:
        """
        Raises:
            sqlite3.Error: the usage file cannot be used.
        """
        logs.configure()
        usage = Usage(None if settings.usage_file is None else Path(settings.usage_file))
        self._limiter = Limiter(usage, settings.reserve_seconds, settings.lease_seconds)

    async def acquire(self, front_end: str, request: LeaseReport, limits: ClientLimits) -> Decision:
        """See ``Limiter.acquire``."""
        return self._limiter.acquire(front_end, request, limits, time.time())

    async def go_on(self, request: LeaseReport, limits: ClientLimits) -> Granted | Denied:
        """See ``Limiter.go_on``."""
        return self._limiter.go_on(request, limits, time.time())

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None:
        """See ``Limiter.report``."""
        self._limiter.report(front_end, live, ended, time.time())


class ServeLimiter:
    """The ``RemoteLimiter`` of the deployment whose replica this process is."""

    def __init__(self) -> None:
        self._actor: ActorHandle | None = None

    async def acquire(self, front_end: str, request: LeaseReport, limits: ClientLimits) -> Decision:
        decision: Decision = await self._call("acquire", front_end, request, limits)
        return decision

    async def go_on(self, request: LeaseReport, limits: ClientLimits) -> Granted | Denied:
        decision: Granted | Denied = await self._call("go_on", request, limits)
        return decision

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None:
        await self._call("report", front_end, live, ended)

    async def _call(self, method: str, *args: Any) -> Any:
        if self._actor is None:
            self._actor = await asyncio.to_thread(serve.get_deployment_actor, NAME)
        try:
            return await getattr(self._actor, method).remote(*args)
        except RayActorError:
            self._actor = None  # there will be another
            raise
