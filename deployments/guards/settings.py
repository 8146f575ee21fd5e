"""The settings of the guards (docs/guards.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from cfg_pairing.admission import Priority
from deployments.strict_settings import Seconds, StrictSettings


class ClientLimits(StrictSettings):
    """What one client may take; None is no limit.

    Attributes:
        requests_per_second: how often a request may come, on average.
        burst: requests at once after a pause; None: a second's worth, at least one.
        concurrent_requests: HTTP requests that are being answered.
        websockets: WebSockets that are open.
        audio_seconds_per_day: audio made for the client, from midnight to midnight UTC.
        priority: the best class that its requests may have (docs/scaling.md); None: any.
    """

    requests_per_second: float | None = Field(None, gt=0)
    burst: int | None = Field(None, ge=1)
    concurrent_requests: int | None = Field(None, ge=1)
    websockets: int | None = Field(None, ge=1)
    audio_seconds_per_day: float | None = Field(None, gt=0)
    priority: Priority | None = None

    @property
    def any(self) -> bool:
        """Whether anything is limited that is counted."""
        return self != ClientLimits(burst=self.burst, priority=self.priority)


class AuditSettings(StrictSettings):
    """The audit log (docs/guards.md).

    Attributes:
        path: name of the log, ``audit.jsonl`` for instance; each HTTP front end of a machine adds
            its number to the name. None: there is no log.
        max_bytes: size of a file, after which the next one is begun.
        files: files of each front end that are kept, the current one included.
        text: whether the texts that clients send are in it.
        audio: whether the audio they get is in it.
    """

    path: str | None = Field(None, min_length=1)
    max_bytes: int = Field(100 * 2**20, ge=1)
    files: int = Field(10, ge=2)
    text: bool = False
    audio: bool = False


_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/?#@*\sA-Z]+")


def _checked_origin(origin: str) -> str:
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(
            f"{origin!r} is nothing that a browser sends; an origin is https://example.org, with "
            "the scheme, in lower case, without a path, and * is all of them"
        )
    return origin


Origin = Annotated[str, AfterValidator(_checked_origin)]


class GuardSettings(StrictSettings):
    """Who gets in, and what they may take (docs/guards.md).

    Attributes:
        keys_file: API keys, made by ``speechlm keys``. Read again when it changes.
        open: serve without keys where others can reach it, and under any name.
        limits: of every client that the keys file does not give others.
        usage_file: where the audio seconds of the day are kept. None: in memory, so that a
            restart of the limiter forgets them.
        reserve_seconds: audio that a request counts as while it has made less than that.
        lease_seconds: how long the requests of a front end that no longer answers count.
        limiter_timeout_seconds: a limiter that takes longer is unavailable: 503.
        audit: the audit log.
        log_format: form of the log lines of front ends and engines.
        cors_origins: web sites whose scripts may use the service, as
            ``https://example.org``, or ``*``. The page at ``/`` needs none.
        max_http_requests, max_websockets: how many may be open per front end; further ones get 429.
        body_timeout_seconds: a body that takes longer to arrive gets 408.
    """

    keys_file: str | None = Field(None, min_length=1)
    open: bool = False
    limits: ClientLimits = ClientLimits()
    usage_file: str | None = Field(None, min_length=1)
    reserve_seconds: Seconds = 30.0
    lease_seconds: float = Field(10.0, ge=1)
    limiter_timeout_seconds: Seconds = 2.0
    audit: AuditSettings = AuditSettings()
    log_format: Literal["json", "text"] = "json"
    cors_origins: list[Origin] = Field(default_factory=list)
    max_http_requests: int = Field(1024, ge=1)
    max_websockets: int = Field(1024, ge=1)
    body_timeout_seconds: Seconds = 30.0

    @model_validator(mode="after")
    def _burst_of_something(self) -> GuardSettings:
        limits = self.limits
        if limits.burst and not limits.requests_per_second and self.keys_file is None:
            raise ValueError("limits.burst: does nothing without limits.requests_per_second")
        return self

    @property
    def limited(self) -> bool:
        """Whether a client can have limits, which needs the limiter."""
        return self.keys_file is not None or self.limits.any

    def with_absolute_paths(self) -> GuardSettings:
        """The same for a process in another directory."""
        audit = self.audit.model_copy(update={"path": _absolute(self.audit.path)})
        return self.model_copy(
            update={
                "keys_file": _absolute(self.keys_file),
                "usage_file": _absolute(self.usage_file),
                "audit": audit,
            }
        )


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())
