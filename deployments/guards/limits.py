"""The limiter: what each client holds and has had, on all front ends together. Pure.

A request holds a lease from before its first byte is read until it has ended. Front ends report
the leases that they hold, every few seconds and when one ends; so a limiter that was restarted
soon knows them again, and those of a front end that has died expire.

Times are Unix seconds, given with every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from deployments.guards.settings import ClientLimits
from deployments.guards.usage import Usage

_DAY_SECONDS = 86_400
_FORGET_EVERY_SECONDS = 600.0
_LATE_SECONDS = 60.0  # no message is on its way for longer

Kind = Literal["request", "websocket"]
LimitName = Literal[
    "requests_per_second", "concurrent_requests", "websockets", "audio_seconds_per_day"
]


@dataclass(frozen=True)
class LeaseReport:
    """A request, as its front end knows it.

    Attributes:
        lease: its name, chosen by the front end; no two are equal.
        makes_audio: whether it counts against the audio of the day.
        seconds: audio made so far.
    """

    lease: str
    client: str
    kind: Kind
    makes_audio: bool
    seconds: float = 0.0


@dataclass(frozen=True)
class Granted:
    """The request may go on."""


@dataclass(frozen=True)
class Denied:
    """The client has reached a limit.

    Attributes:
        limit: what the client may have.
        retry_after: seconds until it may be worth another try; None: when a request ends.
    """

    name: LimitName
    limit: float
    retry_after: float | None


@dataclass(frozen=True)
class Unknown:
    """The limiter does not know what this front end holds; it must report first."""


Decision = Granted | Denied | Unknown


@dataclass
class _FrontEnd:
    seen: float
    leases: dict[str, LeaseReport] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)  # not long ago, and when


@dataclass
class _Bucket:
    tokens: float
    at: float


class Limiter:
    """Grants and counts leases."""

    def __init__(self, usage: Usage, reserve_seconds: float, lease_seconds: float) -> None:
        """
        Args:
            reserve_seconds: what a request counts as while it has made less audio.
            lease_seconds: after which the leases of a silent front end expire.
        """
        self._usage = usage
        self._reserve = reserve_seconds
        self._lease_seconds = lease_seconds
        self._front_ends: dict[str, _FrontEnd] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._forgot = -math.inf

    def acquire(
        self, front_end: str, request: LeaseReport, limits: ClientLimits, now: float
    ) -> Decision:
        """Grants a lease, or says which limit forbids it. A denial costs nothing.

        Args:
            limits: of the client.
        """
        self._expire(now)
        holder = self._front_ends.get(front_end)
        if holder is None:
            return Unknown()
        denied = (
            self._concurrency(request, limits)
            or self._audio(request, limits, now)
            or self._rate(request.client, limits, now)
        )
        if denied is not None:
            return denied
        if request.lease not in holder.ended:  # its end may have come before it
            holder.leases[request.lease] = request
        return Granted()

    def go_on(self, request: LeaseReport, limits: ClientLimits, now: float) -> Granted | Denied:
        """Whether a request that has a lease may make more audio, after what it has made.

        Args:
            limits: of the client.
        """
        self._usage.charge([(request.lease, request.client, request.seconds)], _day(now), now)
        return self._used_up(request.client, limits, now) or Granted()

    def report(
        self, front_end: str, live: Sequence[LeaseReport], ended: Sequence[LeaseReport], now: float
    ) -> None:
        """Everything that a front end holds, and what has ended since its last report.

        It may be repeated, if it is not known whether it arrived, and arrive late.
        """
        totals = [(r.lease, r.client, r.seconds) for r in (*live, *ended) if r.makes_audio]
        self._usage.charge(totals, _day(now), now)
        self._expire(now)
        holder = self._front_ends.setdefault(front_end, _FrontEnd(now))
        holder.seen = now
        holder.ended |= {r.lease: now for r in ended}
        holder.leases |= {r.lease: r for r in live}
        holder.leases = {k: r for k, r in holder.leases.items() if k not in holder.ended}
        holder.ended = {k: at for k, at in holder.ended.items() if now - at < _LATE_SECONDS}
        if now - self._forgot > _FORGET_EVERY_SECONDS:
            self._usage.forget(now)
            self._forgot = now

    def leases(self, client: str, kind: Kind) -> int:
        """How many of a kind a client holds."""
        return sum(1 for r in self._live(client) if r.kind == kind)

    def _live(self, client: str) -> list[LeaseReport]:
        return [
            request
            for front_end in self._front_ends.values()
            for request in front_end.leases.values()
            if request.client == client
        ]

    def _expire(self, now: float) -> None:
        silent = [
            name
            for name, front_end in self._front_ends.items()
            if now - front_end.seen > self._lease_seconds
        ]
        for name in silent:
            del self._front_ends[name]

    def _concurrency(self, request: LeaseReport, limits: ClientLimits) -> Denied | None:
        name: LimitName = "websockets" if request.kind == "websocket" else "concurrent_requests"
        limit: int | None = getattr(limits, name)
        if limit is None or self.leases(request.client, request.kind) < limit:
            return None
        return Denied(name, limit, None)

    def _audio(self, request: LeaseReport, limits: ClientLimits, now: float) -> Denied | None:
        limit = limits.audio_seconds_per_day
        if limit is None or not request.makes_audio:
            return None
        if (denied := self._used_up(request.client, limits, now)) is not None:
            return denied
        # A request that has just begun has made nothing yet. If it counted as nothing, as many
        # as fit into the machine could begin on the last second of the day's audio.
        expected = sum(
            max(0.0, self._reserve - r.seconds) for r in self._live(request.client) if r.makes_audio
        )
        if self._usage.seconds(request.client, _day(now)) + expected >= limit:
            return Denied("audio_seconds_per_day", limit, None)
        return None

    def _used_up(self, client: str, limits: ClientLimits, now: float) -> Denied | None:
        limit = limits.audio_seconds_per_day
        if limit is None or self._usage.seconds(client, _day(now)) < limit:
            return None
        return Denied("audio_seconds_per_day", limit, (_day(now) + 1) * _DAY_SECONDS - now)

    def _rate(self, client: str, limits: ClientLimits, now: float) -> Denied | None:
        rate = limits.requests_per_second
        if rate is None:
            self._buckets.pop(client, None)
            return None
        size = float(limits.burst or max(1, math.floor(rate)))
        bucket = self._buckets.setdefault(client, _Bucket(size, now))
        elapsed = max(0.0, now - bucket.at)
        bucket.tokens, bucket.at = min(size, bucket.tokens + elapsed * rate), now
        # Sums of floats: a token that is due must not be a billionth short.
        if bucket.tokens < 1 - 1e-6:
            return Denied("requests_per_second", rate, (1 - bucket.tokens) / rate)
        bucket.tokens -= 1
        return None


def _day(now: float) -> int:
    return int(now // _DAY_SECONDS)
