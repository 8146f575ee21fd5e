"""The queue of a replica as its requests meet it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from cfg_pairing.admission import AdmissionQueue, Priority
from deployments.calls.messages import Queued, Refused
from deployments.replica.gate import Gate, Pace, Visit
from deployments.settings import AdmissionSettings, PrioritySettings

PATIENT = PrioritySettings(weight=1, max_wait_seconds=1000)


def gate(rows: int = 1, standard: PrioritySettings = PATIENT) -> Gate:
    classes = AdmissionSettings(realtime=PATIENT, standard=standard, batch=PATIENT).classes
    return Gate(AdmissionQueue(rows, 100, classes, 100))


async def work(until: asyncio.Event) -> AsyncGenerator[str, None]:
    yield "begins"
    await until.wait()
    yield "ends"


def passing(
    through: Gate, until: asyncio.Event, priority: Priority = "standard"
) -> AsyncGenerator[str | Queued | Refused, None]:
    return through.pass_through(work(until), priority, 1, Visit(0))


async def test_with_rows_free_nobody_is_queued() -> None:
    done = asyncio.Event()
    done.set()
    through = gate()
    assert [event async for event in passing(through, done)] == ["begins", "ends"]
    assert (through.queue.running, through.visits) == (0, set())


async def test_whoever_waits_is_told_and_begins_when_there_is_room() -> None:
    through, first_done, second_done = gate(), asyncio.Event(), asyncio.Event()
    first, second = passing(through, first_done), passing(through, second_done)
    assert await anext(first) == "begins"
    queued = await anext(second)
    assert isinstance(queued, Queued)
    assert queued.seconds == pytest.approx(2000)
    waiting = asyncio.create_task(anext(second))
    await asyncio.sleep(0)
    assert not waiting.done()
    first_done.set()
    assert [event async for event in first] == ["ends"]
    assert await waiting == "begins"
    await second.aclose()
    assert through.queue.running == 0


async def test_room_that_comes_before_it_waits_is_not_missed() -> None:
    through, done = gate(), asyncio.Event()
    first, second = passing(through, done), passing(through, done)
    await anext(first)
    assert isinstance(await anext(second), Queued)
    await first.aclose()
    assert await anext(second) == "begins"
    await second.aclose()


async def test_leaving_while_it_waits_frees_its_place() -> None:
    through, done = gate(), asyncio.Event()
    first, second, third = (passing(through, done) for _ in range(3))
    await anext(first)
    for waiting in (second, third):
        assert isinstance(await anext(waiting), Queued)
    left = asyncio.create_task(anext(second))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert through.queue.waiting() == 1
    await first.aclose()
    assert await anext(third) == "begins"
    await third.aclose()
    assert (through.queue.running, through.queue.waiting(), through.visits) == (0, 0, set())


async def test_the_better_class_goes_first() -> None:
    through, done = gate(), asyncio.Event()
    done.set()
    first = passing(through, asyncio.Event(), "batch")
    await anext(first)
    begun: list[str] = []

    async def run(priority: Priority) -> None:
        async with aclosing(passing(through, done, priority)) as events:
            async for event in events:
                if event == "begins":
                    begun.append(priority)

    tasks = [asyncio.create_task(run(p)) for p in ("batch", "standard", "realtime")]
    await asyncio.sleep(0.01)
    await first.aclose()
    await asyncio.gather(*tasks)
    assert begun == ["realtime", "standard", "batch"]


async def test_who_would_wait_too_long_is_refused_at_once_and_told_when_to_come_back() -> None:
    through = gate(standard=PrioritySettings(weight=1, max_wait_seconds=0))
    first = passing(through, asyncio.Event())
    await anext(first)
    [refused] = [event async for event in passing(through, asyncio.Event())]
    assert isinstance(refused, Refused)
    assert refused.status == 429
    assert refused.retry_after == pytest.approx(5, abs=0.5)
    assert through.queue.waiting() == 0
    await first.aclose()


async def test_patience_ends() -> None:
    """Of a ticket whose wait was misjudged; its least is a second."""
    through = gate(standard=PrioritySettings(weight=1, max_wait_seconds=0.001))
    through.queue._hold = 0.0  # as if places had been held for no time so far
    holder = passing(through, asyncio.Event(), "batch")
    await anext(holder)
    events = [event async for event in passing(through, asyncio.Event())]
    assert [type(event) for event in events] == [Queued, Refused]
    assert through.queue.waiting() == 0
    await holder.aclose()


async def test_the_pace_is_audio_per_second_of_all_rows() -> None:
    through, visit = gate(rows=8), Visit(audio_seconds=10)
    pace = Pace(through)
    events = through.pass_through(work(asyncio.Event()), "standard", 2, visit)
    await anext(events)
    assert pace.audio_rate(0) == 0
    through.made(visit, 6)
    assert pace.audio_rate(2) == pytest.approx(6 / 2 / 2 * 8)
    assert pace.audio_rate(4) == pytest.approx(12), "a pause says nothing about the pace"
    assert visit.owed == 4
    await events.aclose()
