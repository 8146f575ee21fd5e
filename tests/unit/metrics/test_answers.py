"""What a replica measures of one request, on a clock that the test sets."""

import time
from collections.abc import Iterator

import pytest

from deployments.metrics import emit
from deployments.metrics.answers import AnswerMeter
from deployments.metrics.clips import ClipMeter
from deployments.metrics.sinks import PrometheusSink

RATE = 1000
SPEECH = {"model": "m", "task": "speech", "guided": "true"}


class Clock:
    now = 100.0

    def at(self, seconds: float) -> None:
        """Since the beginning of the test."""
        self.now = 100.0 + seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        yield sink


def value(sink: PrometheusSink, name: str, labels: dict[str, str]) -> float | None:
    return sink.registry.get_sample_value(f"speechlm_{name}", labels)


def pcm(seconds: float) -> bytes:
    return bytes(round(2 * seconds * RATE))


def test_a_request_of_two_utterances(clock: Clock, sink: PrometheusSink) -> None:
    meter = AnswerMeter("speech", guided=True, sample_rate=RATE)
    clock.at(0.5)
    meter.rows(1)
    clock.at(0.75)
    meter.rows(0)
    meter.rows(2)
    meter.audio(pcm(1))
    meter.utterance_ended()
    clock.at(2.0)
    meter.rows(1)
    clock.at(3.0)
    meter.rows(1)
    meter.utterance_ended()
    meter.audio(pcm(3))
    meter.completed()
    meter.closed()

    assert value(sink, "time_to_first_token_seconds_count", SPEECH) == 1
    assert value(sink, "time_to_first_token_seconds_exact_total", SPEECH) == 0.5
    assert value(sink, "time_per_output_frame_seconds_count", SPEECH) == 2
    assert value(sink, "time_per_output_frame_seconds_exact_total", SPEECH) == 0.125 + 1
    assert value(sink, "audio_seconds_total", SPEECH) == 4
    assert value(sink, "audio_length_seconds_exact_total", SPEECH) == 4
    assert value(sink, "real_time_factor_exact_total", SPEECH) == 0.75
    assert value(sink, "audio_gap_seconds_exact_total", SPEECH) == 2.25
    assert value(sink, "underrun_seconds_exact_total", SPEECH) == 1.25


def test_what_was_broken_off_counts_only_as_audio(clock: Clock, sink: PrometheusSink) -> None:
    meter = AnswerMeter("speech", guided=True, sample_rate=RATE)
    clock.at(1)
    meter.rows(5)
    meter.audio(pcm(2))
    meter.closed()
    assert value(sink, "audio_seconds_total", SPEECH) == 2
    assert value(sink, "real_time_factor_count", SPEECH) is None
    assert value(sink, "underrun_seconds_count", SPEECH) is None


def test_an_answer_without_audio_has_no_real_time_factor(
    clock: Clock, sink: PrometheusSink
) -> None:
    meter = AnswerMeter("transcription", guided=False, sample_rate=RATE, began=99.0)
    meter.rows(1)
    meter.utterance_ended()
    meter.completed()
    labels = {"model": "m", "task": "transcription", "guided": "false"}
    assert value(sink, "time_to_first_token_seconds_exact_total", labels) == 1
    assert value(sink, "time_per_output_frame_seconds_count", labels) is None
    assert value(sink, "real_time_factor_count", labels) is None


def test_clips_are_counted_while_they_are_encoded(clock: Clock, sink: PrometheusSink) -> None:
    clips = ClipMeter()
    with clips.clip(4.0):
        assert clips.waiting == 1
        clock.at(0.25)
    assert clips.waiting == 0
    assert value(sink, "encode_seconds_exact_total", {"model": "m"}) == 0.25
    assert value(sink, "encoded_audio_seconds_total", {"model": "m"}) == 4


def test_a_clip_that_fails_waits_no_more_and_was_not_encoded(sink: PrometheusSink) -> None:
    clips = ClipMeter()
    with pytest.raises(MemoryError), clips.clip(4.0):
        raise MemoryError
    assert clips.waiting == 0
    assert value(sink, "encode_seconds_count", {"model": "m"}) is None
    part = {"model": "m", "part": "encoder"}
    assert value(sink, "out_of_memory_events_total", part) == 1
