"""The guards of one front end: what they hold while it runs, and in which order they stand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from deployments.front_end.middleware import (
    BodyLimit,
    BodyTimeout,
    RequestId,
    Traced,
    UnexpectedErrors,
)
from deployments.guards.access import Access
from deployments.guards.admission import Admission, Capacity
from deployments.guards.audit import Audit
from deployments.guards.audit_log import AuditLog
from deployments.guards.browser import SecurityHeaders, cors_options
from deployments.guards.deadline import Deadline
from deployments.guards.draining import Drain, Draining
from deployments.guards.key_source import KeySource, configured
from deployments.guards.keys import ANONYMOUS
from deployments.guards.leases import Leases
from deployments.guards.limiter import RemoteLimiter
from deployments.guards.local_names import LocalNames
from deployments.guards.settings import GuardSettings
from deployments.settings import ServiceSettings


@dataclass
class Guards:
    """What a front end needs to know who may do what.

    Attributes:
        keys: None: nobody needs one.
        leases: None: nobody has limits.
        audit_log: None: none is written.
        drain: begun when the front end is to end.
    """

    settings: GuardSettings
    keys: KeySource | None = None
    leases: Leases | None = None
    audit_log: AuditLog | None = None
    drain: Drain = field(default_factory=Drain)

    @classmethod
    def begin(
        cls,
        settings: GuardSettings,
        service: ServiceSettings,
        limiter: RemoteLimiter,
        environment: Mapping[str, str] = os.environ,
    ) -> Guards:
        """Reads the keys and opens the audit log.

        Args:
            limiter: not used unless ``settings.limited``.

        Raises:
            ValueError: the keys cannot be used, or the audit log cannot be written; the message
                names the setting.
        """
        keys = KeySource(settings, environment) if configured(settings, environment) else None
        if keys is not None:
            keys.follow()
        leases = None
        if settings.limited:
            leases = Leases(limiter, settings, service.retry_after_seconds)
        try:
            log = None if settings.audit.path is None else AuditLog(settings.audit)
        except OSError as error:
            raise ValueError(f"guards.audit.path: {error}") from error
        return cls(settings, keys, leases, log)

    async def end(self) -> None:
        """Reports and writes what is left."""
        if self.keys is not None:
            self.keys.stop()
        if self.leases is not None:
            await self.leases.close()
        if self.audit_log is not None:
            self.audit_log.close()

    def install(self, app: FastAPI, service: ServiceSettings) -> None:
        """Puts them around an application, and into its state as ``guards``.

        Read from the bottom: the last one is outermost.
        """
        app.state.guards = self
        settings = self.settings
        app.add_middleware(BodyTimeout, seconds=settings.body_timeout_seconds)
        app.add_middleware(
            BodyLimit, max_bytes=service.max_body_bytes, max_upload_bytes=service.max_upload_bytes
        )
        app.add_middleware(Deadline)
        if self.leases is not None:
            app.add_middleware(Admission, leases=self.leases)
        app.add_middleware(
            Access, keys=self.keys, anonymous=settings.limits, origins=settings.cors_origins
        )
        if self.keys is None and not settings.open:  # so it listens on loopback (exposure.py)
            app.add_middleware(LocalNames)
        app.add_middleware(
            Capacity,
            max_requests=settings.max_http_requests,
            max_websockets=settings.max_websockets,
            retry_after=service.retry_after_seconds,
        )
        app.add_middleware(Draining, drain=self.drain, retry_after=service.retry_after_seconds)
        app.add_middleware(
            Audit,
            client=ANONYMOUS if self.keys is None else None,
            write=None if self.audit_log is None else self.audit_log.write,
            keep_text=settings.audit.text and self.audit_log is not None,
            keep_audio=settings.audit.audio and self.audit_log is not None,
        )
        app.add_middleware(Traced)
        app.add_middleware(RequestId)
        app.add_middleware(UnexpectedErrors)
        if settings.cors_origins:
            app.add_middleware(CORSMiddleware, **cors_options(settings.cors_origins))
        app.add_middleware(SecurityHeaders)
