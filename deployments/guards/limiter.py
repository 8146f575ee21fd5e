"""The limiter as a deployment of one replica, which all front ends ask."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from ray.serve.handle import DeploymentHandle

from deployments.guards import logs
from deployments.guards.limits import Decision, LeaseReport, Limiter
from deployments.guards.usage import Usage
from deployments.settings import ClientLimits, GuardSettings


class RemoteLimiter(Protocol):
    """The limiter, as a front end uses it."""

    async def acquire(
        self, front_end: str, request: LeaseReport, limits: ClientLimits
    ) -> Decision: ...

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None: ...


class LimiterReplica:
    """One limiter for all front ends.

    It is a process of its own, and not part of a front end, so that none of them is special. If
    it dies, Serve starts another; until that one answers, requests with limits get 503.
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

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None:
        """See ``Limiter.report``."""
        self._limiter.report(front_end, live, ended, time.time())


class ServeLimiter:
    """The ``RemoteLimiter`` behind a Serve handle."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def acquire(self, front_end: str, request: LeaseReport, limits: ClientLimits) -> Decision:
        decision: Decision = await self._handle.acquire.remote(front_end, request, limits)
        return decision

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None:
        await self._handle.report.remote(front_end, live, ended)
