"""What is emitted arrives in a real registry as its definition says."""

import pytest

from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.sinks import PrometheusSink


def value(sink: PrometheusSink, name: str, **labels: str) -> float | None:
    return sink.registry.get_sample_value(name, labels)


def test_a_counter_counts_by_its_labels() -> None:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        emit.add(d.AUDIO_SECONDS, 1.5, task="speech", guided="true")
        emit.add(d.AUDIO_SECONDS, 2, task="speech", guided="true")
        emit.add(d.AUDIO_SECONDS, task="speech", guided="false")
    name = "speechlm_audio_seconds_total"
    assert value(sink, name, model="m", task="speech", guided="true") == 3.5
    assert value(sink, name, model="m", task="speech", guided="false") == 1


def test_a_histogram_has_an_exact_sum_beside_it() -> None:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        for seconds in (0.05, 0.0, 7.25):
            emit.observe(d.VOCODER_WAIT_SECONDS, seconds)
        emit.count(d.VOCODER_WAIT_SECONDS, 0.5, times=2)
    name = "speechlm_vocoder_wait_seconds"
    assert value(sink, f"{name}_count", model="m") == 5
    assert value(sink, f"{name}_bucket", model="m", le="0.05") == 2
    assert value(sink, f"{name}_exact_total", model="m") == 7.3


def test_a_gauge_has_its_last_value() -> None:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        emit.put(d.ROWS_RUNNING, 5)
        emit.put(d.ROWS_RUNNING, 2)
    assert value(sink, "speechlm_rows_running", model="m") == 2


def test_counters_whose_first_event_matters_start_at_0_where_the_model_is_known() -> None:
    front_end, replica = PrometheusSink(), PrometheusSink()
    with emit.using(front_end), emit.using(replica, model="m"):
        pass
    name = "speechlm_out_of_memory_events_total"
    assert value(replica, name, model="m", part="vocoder") == 0
    assert value(replica, "speechlm_preemptions_total", model="m") == 0
    assert "speechlm" not in front_end.text()


def test_labels_are_those_of_the_definition() -> None:
    with emit.using(PrometheusSink()), pytest.raises(ValueError, match="speechlm_rows_running"):
        emit.put(d.ROWS_RUNNING, 1)
    with emit.using(PrometheusSink()), pytest.raises(ValueError, match="colour"):
        emit.put(d.ROWS_RUNNING, 1, model="m", colour="red")


def test_nothing_is_kept_behind_a_block() -> None:
    sink = PrometheusSink()
    with emit.using(sink):
        pass
    emit.put(d.ROWS_RUNNING, 1, model="m")
    assert sink.text() == ""
