"""The ingress's side of one answer of an engine replica to several parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

from deployments.calls.answer_messages import AnswerCall, Answered, AnswerEvent, Codes, TextPiece
from deployments.calls.beginning import begin
from deployments.calls.errors import FAILURES, failure, refusal, unavailable
from deployments.calls.health import Checked, answers
from deployments.calls.messages import Accepted, Refused
from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from vocoder_service.busy import EncoderBusy


class AnsweringEngines(Checked, Protocol):
    """The replicas of one model, as the ingress uses them."""

    def answer(self, call: AnswerCall) -> Any:
        """The events of ``EngineReplica.answer``: as ``ReplicaEvents``."""

    def encode(self, samples: Any) -> Any:
        """An awaitable of codes, with ``cancel()``."""


class Answer:
    """A request that a replica has accepted and whose first text or audio exists.

    Attributes:
        accepted: the replica's first event.
        answered: the replica's last event; None until ``pieces`` is exhausted.
    """

    def __init__(
        self,
        accepted: Accepted,
        first: AnswerEvent,
        events: Any,
        retry_after: int,
        audit: AuditRecord,
    ) -> None:
        self.accepted = accepted
        self.answered: Answered | None = None
        self._first = first
        self._events = events
        self._retry_after = retry_after
        self._audit = audit

    def cancel(self) -> None:
        """Ends the work, if it has not ended."""
        self._events.cancel()

    @classmethod
    async def begin(
        cls,
        engines: AnsweringEngines,
        call: AnswerCall,
        accept_timeout: float,
        retry_after: int,
        audit: AuditRecord,
    ) -> Answer:
        """Sends a request and waits for its first piece, so that a refusal has a status.

        Args:
            accept_timeout: seconds a replica has to accept; the answer may take longer.
            retry_after: seconds, for a client that is refused for lack of room.
            audit: learns what is made.

        Raises:
            ApiError: refused, failed before any piece, or no replica answers.
        """
        events, accepted, _, first = await begin(
            lambda: engines.answer(call), accept_timeout, retry_after, audit
        )
        return cls(accepted, first, events, retry_after, audit)

    async def pieces(self) -> AsyncIterator[TextPiece | bytes]:
        """Text, and PCM of 16 bits, as they are made. Leaving it early ends the request.

        Raises:
            ApiError: generation failed; what came is not the whole.
        """
        try:
            event = self._first
            while not isinstance(event, Answered):
                if isinstance(event, Refused):
                    raise refusal(event, self._retry_after)
                if isinstance(event, bytes):
                    self._audit.made(event, self.accepted.sample_rate)
                if isinstance(event, TextPiece | bytes):
                    yield event
                event = await anext(self._events)
            self.answered = event
            self._audit.finish_reason = event.finish_reason
        except StopAsyncIteration:
            raise ApiError(500, "the answer broke off") from None
        except FAILURES as error:
            raise failure(error, self._retry_after) from error
        finally:
            if self.answered is None:
                self.cancel()


async def encode(
    engines: AnsweringEngines, samples: Any, accept_timeout: float, retry_after: int
) -> Codes:
    """Codes of a clip, int32 ``[frames, streams]``.

    Args:
        accept_timeout: seconds after which, again and again, a replica must be there; encoding
            may take longer.
        retry_after: seconds, for a client that is refused.

    Raises:
        ApiError: no replica can encode it now.
    """
    response = engines.encode(samples)
    work = asyncio.ensure_future(_whole(response))
    try:
        while not (await asyncio.wait({work}, timeout=accept_timeout))[0]:
            if not await answers(engines):
                raise unavailable(retry_after)
        return work.result()
    except EncoderBusy as error:
        raise refusal(Refused(429, str(error)), retry_after) from error
    except FAILURES as error:
        raise failure(error, retry_after) from error
    finally:
        if not work.done():
            response.cancel()
            work.cancel()


async def _whole(response: Any) -> Codes:
    codes: Codes = await response
    return codes
