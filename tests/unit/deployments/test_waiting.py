"""What clients see of the queue: they wait, or are told when to come back; and their class."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from deployments.calls.beginning import begin
from deployments.calls.messages import Queued, Refused
from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from tests.unit.deployments.speaking_stand_in import (
    CARD,
    PCM,
    SPOKEN,
    WAV,
    Script,
    StandIn,
    client,
)
from tests.unit.deployments.stand_in import Events, error_of


async def test_a_request_that_waited_is_answered_like_any_other() -> None:
    async with client(StandIn([Queued(30), *SPOKEN])) as http:
        answer = await http.post("/v1/audio/speech", json=WAV)
    assert answer.status_code == 200
    assert answer.content.endswith(PCM)


class Silent(Events[Queued]):
    """Says that the request is queued, and never anything else."""

    async def __anext__(self) -> Queued:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            await asyncio.Event().wait()
            raise


async def test_who_hears_nothing_for_longer_than_the_replica_said_is_let_go() -> None:
    silent = Silent([Queued(0.05)])
    with pytest.raises(ApiError) as caught:
        await begin(lambda: silent, 0.05, 2, AuditRecord("id", "POST", "/"))
    assert caught.value.status in (429, 503)
    assert silent.cancelled


@pytest.mark.parametrize(("seconds", "header"), [(12.2, "13"), (0.0, "1"), (None, "2")])
async def test_a_refusal_says_when_there_will_be_room(seconds: float | None, header: str) -> None:
    refused = Refused(429, "20 requests are being served", retry_after=seconds)
    scripts: list[Script] = [[refused], [Queued(1), refused]]
    for events in scripts:
        async with client(StandIn(events)) as http:
            answer = await http.post("/v1/audio/speech", json=WAV)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == header
        assert error_of(answer)["code"] == "rate_limit_exceeded"


async def test_the_class_reaches_the_replica() -> None:
    engines = StandIn()
    async with client(engines) as http:
        for headers in ({}, {"x-priority-class": "batch"}):
            await http.post("/v1/audio/speech", json=WAV, headers=headers)
        refused = await http.post("/v1/audio/speech", json=WAV, headers={"x-priority-class": "now"})
    assert [call.priority for call in engines.calls] == ["standard", "batch"]
    assert refused.status_code == 400
    assert error_of(refused)["param"] == "x-priority-class"


async def test_a_model_that_may_sleep_is_not_asked_whether_it_is_ready() -> None:
    missing = StandIn([RuntimeError("no replica")])
    async with client(missing, card=replace(CARD, sleeps=True)) as http:
        assert (await http.get("/ready")).status_code == 200
    async with client(missing) as http:
        assert (await http.get("/ready")).status_code == 503
