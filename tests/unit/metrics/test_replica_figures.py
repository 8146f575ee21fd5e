"""What a replica says of itself: its queue, and whether its engine and its vocoder answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from cfg_pairing.admission import AdmissionQueue
from deployments.metrics import emit, replica_figures
from deployments.metrics.clips import ClipMeter
from deployments.metrics.replica_figures import ReplicaFigures
from deployments.metrics.sinks import PrometheusSink
from deployments.replica.gate import Gate, Visit
from deployments.settings import AdmissionSettings, PrioritySettings
from engine_adapter.request import EngineUnavailable
from vocoder_service.service import VocoderStats

Answer = Callable[[], Coroutine[Any, Any, Any]]
PATIENT = PrioritySettings(weight=1, max_wait_seconds=1000)
IDLE = VocoderStats(0, 0, 0, 0, 0, 0, 0)


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        yield sink


def value(sink: PrometheusSink, name: str, **labels: str) -> float | None:
    return sink.registry.get_sample_value(f"speechlm_{name}", {"model": "m", **labels})


def gate(rows: int) -> Gate:
    classes = AdmissionSettings(realtime=PATIENT, standard=PATIENT, batch=PATIENT).classes
    return Gate(AdmissionQueue(rows, 100, classes, 100))


async def idle() -> Any:
    return {"runner_requests": 0}


async def dead() -> Any:
    raise EngineUnavailable("the engine is dead")


async def hung() -> Any:
    await asyncio.Event().wait()


def figures(queue: Gate, engine: Answer = idle, vocoder: Answer | None = None) -> ReplicaFigures:
    async def stats() -> VocoderStats:
        return IDLE

    async def no_gpu() -> None:
        return None

    return ReplicaFigures(
        queue,
        ClipMeter(),
        SimpleNamespace(config=SimpleNamespace(max_rows=64), kv_blocks=100, stats=engine),  # type: ignore[arg-type]
        SimpleNamespace(
            stats=SimpleNamespace(remote=vocoder or stats),
            gpu_memory=SimpleNamespace(remote=no_gpu),
        ),
        capacity=100,
    )


@asynccontextmanager
async def here(queue: Gate, audio_seconds: float) -> AsyncIterator[Visit]:
    """A request of the class ``batch`` that has come as far as it can."""

    async def work() -> AsyncGenerator[str, None]:
        yield "begins"

    visit = Visit(audio_seconds)
    passing = queue.pass_through(work(), "batch", 1, visit)
    await anext(passing)
    try:
        yield visit
    finally:
        await passing.aclose()


async def test_who_is_served_who_waits_and_what_they_are_owed(sink: PrometheusSink) -> None:
    queue = gate(rows=1)
    shown = figures(queue)
    async with here(queue, audio_seconds=10) as served, here(queue, audio_seconds=5):
        queue.made(served, 4)
        await shown.once()
        assert value(sink, "replica_requests") == 1
        assert value(sink, "replica_capacity") == 100
        assert value(sink, "admission_waiting", priority="batch") == 1
        assert value(sink, "admission_waiting", priority="realtime") == 0
        assert value(sink, "audio_owed_seconds") == 6 + 5
    await shown.once()
    assert value(sink, "replica_requests") == value(sink, "audio_owed_seconds") == 0
    assert value(sink, "admission_waiting", priority="batch") == 0


async def test_a_replica_whose_engine_and_vocoder_answer_is_healthy(sink: PrometheusSink) -> None:
    await figures(gate(rows=8)).once()
    assert value(sink, "replica_healthy") == 1
    assert value(sink, "rows_capacity") == 64


@pytest.mark.parametrize("answer", [dead, hung])
@pytest.mark.parametrize("part", ["engine", "vocoder"])
async def test_one_where_either_does_not_is_not(
    sink: PrometheusSink, monkeypatch: pytest.MonkeyPatch, part: str, answer: Answer
) -> None:
    monkeypatch.setattr(replica_figures, "_PATIENCE_SECONDS", 0.05)
    await figures(gate(rows=8), **{part: answer}).once()
    assert value(sink, "replica_healthy") == 0
