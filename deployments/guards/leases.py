"""A front end's side of the limiter: one lease per request, and the reports of them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from deployments.front_end.errors import ApiError
from deployments.guards.keys import Caller
from deployments.guards.limiter import RemoteLimiter
from deployments.guards.limits import Denied, Kind, LeaseReport, Unknown
from deployments.guards.settings import ClientLimits, GuardSettings

_REPORTS_PER_LEASE = 4  # so that one that is lost does no harm
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lease:
    """A request that was let in.

    Attributes:
        seconds: reads the audio made so far.
    """

    request: LeaseReport
    seconds: Callable[[], float]

    def report(self) -> LeaseReport:
        """The request as it is now."""
        return replace(self.request, seconds=self.seconds())


class Leases:
    """The requests of this front end that have limits."""

    def __init__(self, limiter: RemoteLimiter, settings: GuardSettings, retry_after: int) -> None:
        """
        Args:
            retry_after: seconds, for a client that cannot be told anything better.
        """
        self._limiter = limiter
        self._timeout = settings.limiter_timeout_seconds
        self._interval = settings.lease_seconds / _REPORTS_PER_LEASE
        self._retry_after = retry_after
        self._front_end = uuid.uuid4().hex
        self._live: dict[str, Lease] = {}
        self._ended: dict[str, LeaseReport] = {}  # and not yet known to the limiter
        self._one_report = asyncio.Lock()
        self._news = asyncio.Event()
        self._reporter: asyncio.Task[None] | None = None

    async def acquire(
        self, caller: Caller, kind: Kind, makes_audio: bool, seconds: Callable[[], float]
    ) -> Lease:
        """Asks for a lease, which must be released however the request ends.

        Raises:
            ApiError: 429, a limit is reached; 503, the limiter does not answer.
        """
        self._begin_reporting()
        request = LeaseReport(uuid.uuid4().hex, caller.client, kind, makes_audio)
        lease = Lease(request, seconds)
        try:
            async with asyncio.timeout(self._timeout):
                decision = await self._limiter.acquire(self._front_end, request, caller.limits)
                if isinstance(decision, Unknown):  # it was started again, or has not heard of us
                    await self._report()
                    decision = await self._limiter.acquire(self._front_end, request, caller.limits)
        except BaseException as error:
            self.release(lease)  # it may have been granted
            if not isinstance(error, Exception):
                raise
            _log.error("the limiter does not answer: %s", type(error).__name__)
            raise self._unavailable() from error
        if isinstance(decision, Denied):
            raise self._denial(caller.client, decision)
        if isinstance(decision, Unknown):
            raise self._unavailable()
        self._live[request.lease] = lease
        return lease

    async def require_audio(self, lease: Lease, limits: ClientLimits) -> None:
        """
        Args:
            limits: of the client, as they are now.

        Raises:
            ApiError: 429, the client's audio of the day is used up; 503, the limiter does not
                answer.
        """
        if limits.audio_seconds_per_day is None:
            return
        request = lease.report()
        try:
            async with asyncio.timeout(self._timeout):
                decision = await self._limiter.go_on(request, limits)
        except Exception as error:
            _log.error("the limiter does not answer: %s", type(error).__name__)
            raise self._unavailable() from error
        if isinstance(decision, Denied):
            raise self._denial(request.client, decision)

    def release(self, lease: Lease) -> None:
        """The request has ended. The limiter hears of it shortly."""
        self._live.pop(lease.request.lease, None)
        self._ended[lease.request.lease] = lease.report()
        self._news.set()

    async def close(self) -> None:
        """Ends the reports, after a last one."""
        if self._reporter is None:
            return
        self._reporter.cancel()
        try:
            await self._report()
        except Exception as error:  # the limiter may have stopped first
            _log.warning("the last report did not reach the limiter: %s", type(error).__name__)

    def _begin_reporting(self) -> None:
        if self._reporter is None:
            # With a context of its own: what is called in that of a request ends with it.
            self._reporter = asyncio.get_running_loop().create_task(
                self._keep_reporting(), context=contextvars.Context()
            )

    async def _keep_reporting(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            try:
                await self._report()
            except Exception as error:  # whatever it is, the next report says it all again
                _log.warning("a report did not reach the limiter: %s", type(error).__name__)
                await asyncio.sleep(self._interval)

    async def _report(self) -> None:
        async with self._one_report, asyncio.timeout(self._timeout):
            ended = list(self._ended.values())
            live = [lease.report() for lease in self._live.values()]
            await self._limiter.report(self._front_end, live, ended)
            for request in ended:
                del self._ended[request.lease]

    def _denial(self, client: str, denied: Denied) -> ApiError:
        wait = self._retry_after if denied.retry_after is None else denied.retry_after
        return ApiError(
            429,
            f"{client} has reached the limit {denied.name} = {denied.limit:g}",
            code=denied.name,
            retry_after=max(1, math.ceil(wait)),
        )

    def _unavailable(self) -> ApiError:
        return ApiError(
            503,
            "limits cannot be checked at the moment",
            code="limiter_unavailable",
            retry_after=self._retry_after,
        )
