"""Figures that are counted in other processes become gauges, and increases of counters."""

from typing import Any

import pytest

from cfg_pairing.ledger import PairLedger
from cfg_pairing.step_times import StepTimes
from deployments.metrics import emit
from deployments.metrics.engine_figures import EngineFigures
from deployments.metrics.sinks import PrometheusSink
from deployments.metrics.vocoder_figures import VocoderFigures
from vocoder_service.service import VocoderStats


def engine_stats(ledger: PairLedger, times: StepTimes, **changes: Any) -> dict[str, Any]:
    return {
        "pairs": ledger.to_dict(),
        "rows_running": 3,
        "rows_waiting": 2,
        "rows_capacity": 64,
        "blocks_in_use": 10,
        "blocks_total": 100,
        "frames": 40,
        "preemptions": 1,
        "outcomes": {"finished": 2, "aborted": 1, "failed": 0},
        **times.to_dict(),
        **changes,
    }


@pytest.fixture
def sink() -> Any:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        yield sink


def value(sink: PrometheusSink, name: str, **labels: str) -> float | None:
    return sink.registry.get_sample_value(f"speechlm_{name}", {"model": "m", **labels})


def test_an_engine_that_has_not_worked_has_room(sink: PrometheusSink) -> None:
    EngineFigures(rows=64, kv_blocks=100).emit({"runner_requests": 0})
    assert value(sink, "rows_running") == value(sink, "rows_waiting") == 0
    assert (value(sink, "rows_capacity"), value(sink, "kv_blocks_capacity")) == (64, 100)
    assert value(sink, "unguided_frames") == value(sink, "pair_rows_split") == 0
    assert value(sink, "preemptions_total") == value(sink, "frames_total") == 0


def test_what_the_engine_has_counted_is_counted_once(sink: PrometheusSink) -> None:
    figures, ledger, times = EngineFigures(64, 100), PairLedger(), StepTimes()
    times.add(0.02, 10)
    times.add(0.02, 4)
    ledger.count("admitted")
    for _ in range(2):
        figures.emit(engine_stats(ledger, times))
    assert value(sink, "engine_step_seconds_count") == 2
    assert value(sink, "engine_step_seconds_bucket", le="0.02") == 2
    assert value(sink, "engine_step_seconds_bucket", le="0.01") == 0
    assert value(sink, "engine_step_seconds_exact_total") == 0.04
    assert value(sink, "engine_tokens_total") == 14
    assert value(sink, "engine_requests_total", outcome="finished") == 2
    assert value(sink, "pairs_total", event="admitted") == 1
    assert (value(sink, "rows_running"), value(sink, "rows_waiting")) == (3, 2)
    assert value(sink, "kv_blocks_used") == 10

    times.add(30.0, 1)
    ledger.count("admitted")
    ledger.count("unguided_frames")
    ledger.count("rows_split")
    figures.emit(engine_stats(ledger, times, rows_running=0, frames=45, preemptions=3))
    assert value(sink, "engine_step_seconds_count") == 3
    assert value(sink, "engine_step_seconds_bucket", le="1.0") == 2
    assert value(sink, "pairs_total", event="admitted") == 2
    assert value(sink, "rows_running") == 0
    assert (value(sink, "frames_total"), value(sink, "preemptions_total")) == (45, 3)
    assert value(sink, "unguided_frames") == value(sink, "pair_rows_split") == 1


def test_memory_of_a_gpu_appears_where_there_is_one(sink: PrometheusSink) -> None:
    figures, none = EngineFigures(64, 100), engine_stats(PairLedger(), StepTimes())
    figures.emit(none)
    assert "gpu" not in sink.text()
    figures.emit({**none, "gpu_memory": {"held": 5, "used": 7, "capacity": 9}})
    assert value(sink, "gpu_memory_bytes", part="engine") == 5
    assert value(sink, "gpu_device_memory_bytes", state="used") == 7
    assert value(sink, "gpu_device_memory_bytes", state="capacity") == 9


def test_what_the_vocoder_has_counted_is_counted_once(sink: PrometheusSink) -> None:
    figures = VocoderFigures()
    for windows in (10, 10, 16):
        figures.emit(
            VocoderStats(
                live_streams=2,
                queue_depth=5,
                windows_decoded=windows,
                batches=windows // 2,
                mean_batch_size=2,
                decode_seconds=windows / 8,
                load=0.25,
            )
        )
    assert value(sink, "vocoder_windows_total") == 16
    assert value(sink, "vocoder_batches_total") == 8
    assert value(sink, "vocoder_decode_seconds_total") == 2
    assert value(sink, "vocoder_queue") == 5
    assert value(sink, "vocoder_streams") == 2
    assert value(sink, "vocoder_busy_ratio") == 0.25
