"""A request that no replica takes: 429 where replicas are busy, 503 where there are none."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from deployments.calls.beginning import begin
from deployments.calls.events import Pulse, ReplicaEvents
from deployments.calls.messages import Accepted, SpeechEvent
from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from tests.unit.deployments.stand_in import Events

ACCEPT_SECONDS = 0.05


class Silent:
    """A request that waits for a replica."""

    cancelled = False

    def __aiter__(self) -> AsyncIterator[SpeechEvent]:
        return self

    async def __anext__(self) -> SpeechEvent:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    def cancel(self) -> None:
        self.cancelled = True


async def refused(events: ReplicaEvents) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await begin(
            lambda: events, ACCEPT_SECONDS, 2, AuditRecord("id", "POST", "/v1/audio/speech")
        )
    return caught.value


async def test_while_replicas_answer_others_there_is_no_room_here() -> None:
    pulse, waiting = Pulse(), Silent()
    request = asyncio.create_task(refused(ReplicaEvents(waiting, pulse)))
    await asyncio.sleep(0)
    assert await anext(ReplicaEvents(Events([Accepted(7, 16_000)]), pulse)) == Accepted(7, 16_000)
    error = await request
    assert (error.status, error.code) == (429, "rate_limit_exceeded")
    assert error.headers == {"Retry-After": "2"}
    assert waiting.cancelled


@pytest.mark.parametrize("heard", ["never", "before", "of another model"])
async def test_without_an_answer_to_anybody_there_is_no_engine(heard: str) -> None:
    pulse, waiting = Pulse(), Silent()
    if heard != "never":
        of = pulse if heard == "before" else Pulse()
        await anext(ReplicaEvents(Events([Accepted(7, 16_000)]), of))
    error = await refused(ReplicaEvents(waiting, pulse))
    assert (error.status, error.code) == (503, "engine_unavailable")
    assert error.headers == {"Retry-After": "2"}
    assert waiting.cancelled
