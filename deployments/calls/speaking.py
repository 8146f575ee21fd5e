"""The ingress's side of one request to an engine replica."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from deployments.calls.beginning import begin
from deployments.calls.errors import FAILURES, failure, refusal
from deployments.calls.health import Checked
from deployments.calls.messages import (
    Accepted,
    Finished,
    FirstAudio,
    Refused,
    SpeechCall,
    SpeechEvent,
)
from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord


class Engines(Checked, Protocol):
    """The replicas of one model, as the ingress uses them."""

    def speak(self, call: SpeechCall) -> Any:
        """The events of ``EngineReplica.speak``: as ``ReplicaEvents``."""


class Speech:
    """A request that a replica has accepted and whose first audio exists.

    Attributes:
        accepted: the replica's first event.
        accept: seconds until it came.
        first: its first audio.
        finished: the replica's last event; None until ``pcm`` is exhausted.
    """

    def __init__(
        self,
        accepted: Accepted,
        accept: float,
        first: FirstAudio,
        events: Any,
        retry_after: int,
        audit: AuditRecord,
    ) -> None:
        self.accepted = accepted
        self.accept = accept
        self.first = first
        self.finished: Finished | None = None
        self._events = events
        self._retry_after = retry_after
        self._audit = audit

    @classmethod
    async def begin(
        cls,
        engines: Engines,
        call: SpeechCall,
        accept_timeout: float,
        retry_after: int,
        audit: AuditRecord,
    ) -> Speech:
        """Sends a request and waits for its first audio, so that a refusal has a status.

        Args:
            accept_timeout: seconds a replica has to accept; the audio may take longer.
            retry_after: seconds, for a client that is refused for lack of room.
            audit: learns what is made, and when.

        Raises:
            ApiError: refused, failed before any audio, or no replica answers.
        """
        events, accepted, accept, first = await begin(
            lambda: engines.speak(call), accept_timeout, retry_after, audit
        )
        if not isinstance(first, FirstAudio):
            raise ApiError(500, "the model made no audio for this input")
        return cls(accepted, accept, first, events, retry_after, audit)

    def cancel(self) -> None:
        """Ends the work; of ``pcm`` no more is wanted."""
        self._events.cancel()

    async def pcm(self) -> AsyncIterator[bytes]:
        """All PCM, in pieces.

        Raises:
            ApiError: generation failed; what came is not the whole.
        """
        yield self._counted(self.first.pcm)
        event: SpeechEvent
        try:
            async for event in self._events:
                if isinstance(event, Finished):
                    self.finished = event
                    self._audit.finish_reason = event.finish_reason
                elif isinstance(event, bytes):
                    yield self._counted(event)
                elif isinstance(event, Refused):
                    raise refusal(event, self._retry_after)
        except FAILURES as error:
            raise failure(error, self._retry_after) from error
        if self.finished is None:
            raise ApiError(500, "the audio broke off")

    def _counted(self, pcm: bytes) -> bytes:
        self._audit.made(pcm, self.accepted.sample_rate)
        return pcm
