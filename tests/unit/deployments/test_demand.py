"""What shows of a request before a replica has seen it: rows, beginnings, audio; and its class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from ray.serve._private.common import TimeStampedValue

from cfg_pairing.admission import Priority
from cfg_pairing.autoscaling import ReplicaSignals, ScalingPolicy
from deployments.autoscaling import signals_of
from deployments.calls.answer_messages import AnswerCall, CallPart, Clip
from deployments.calls.demand import audio_seconds, demand_of, rows_of
from deployments.calls.messages import SpeechCall, Utterance
from deployments.front_end.errors import ApiError
from deployments.guards.priority import priority_of
from deployments.guards.settings import ClientLimits
from deployments.settings import AutoscalingSettings, ModelSettings

SPEECH = SpeechCall("id", (Utterance("x" * 15), Utterance("y" * 30)), "rms")
SPEAKER = np.arange(800, dtype=np.int32).reshape(100, 8)
HOP = 320
CLIP = Clip(np.zeros(3200, np.float32))
ANSWER = AnswerCall(
    "id",
    "conversation",
    "text+audio",
    (CallPart("user", "audio", CLIP), CallPart("user", "text", "And now?")),
    "messages",
)


@pytest.mark.parametrize(
    ("scale", "default", "rows"), [(None, 1, 1), (None, 2, 2), (1.0, 2, 1), (1.5, 1, 2)]
)
def test_guidance_takes_two_rows(scale: float | None, default: float, rows: int) -> None:
    assert rows_of(replace(SPEECH, cfg_scale=scale), default) == rows
    assert rows_of(replace(ANSWER, cfg_scale=scale), default) == rows
    assert rows_of(replace(ANSWER, cfg_scale=scale, output="text"), default) == 1


def test_a_recorded_voice_is_a_beginning_of_its_length() -> None:
    one = demand_of(replace(SPEECH, speaker=SPEAKER), 1, HOP)
    same = demand_of(replace(SPEECH, speaker=SPEAKER.copy(), utterances=()), 1, HOP)
    other = demand_of(replace(SPEECH, speaker=SPEAKER + 1), 1, HOP)
    assert one == same
    assert one.prefix != other.prefix
    assert (one.prefix_rows, demand_of(SPEECH, 1, HOP).prefix_rows) == (100, 0)


def test_a_conversation_begins_with_what_came_before() -> None:
    next_turn = replace(ANSWER, parts=(*ANSWER.parts, CallPart("user", "text", "And then?")))
    assert demand_of(next_turn, 1, HOP).prefix == demand_of(ANSWER, 1, HOP).prefix
    assert demand_of(ANSWER, 1, HOP).prefix_rows == 10
    assert demand_of(next_turn, 1, HOP).prefix_rows == 10 + 2


def test_a_row_of_audio_is_as_long_as_the_model_has_it() -> None:
    assert [demand_of(ANSWER, 1, samples).prefix_rows for samples in (160, 1280)] == [20, 2]


def test_audio_is_reckoned_by_the_text() -> None:
    assert audio_seconds(SPEECH) == 3
    assert audio_seconds(replace(SPEECH, max_seconds=1)) == 1
    assert audio_seconds(ANSWER) == 0


@pytest.mark.parametrize(
    ("asked", "best", "priority"),
    [
        (None, None, "standard"),
        (None, "realtime", "standard"),
        (None, "batch", "batch"),
        ("realtime", None, "realtime"),
        ("batch", "standard", "batch"),
    ],
)
def test_the_class_is_the_one_asked_for(
    asked: str | None, best: Priority | None, priority: Priority
) -> None:
    assert priority_of(asked, best) == priority


@pytest.mark.parametrize(
    ("asked", "best", "status"),
    [("urgent", None, 400), ("", None, 400), ("realtime", "batch", 403)],
)
def test_a_class_that_is_not_to_be_had_is_refused(
    asked: str, best: Priority | None, status: int
) -> None:
    with pytest.raises(ApiError) as caught:
        priority_of(asked, best)
    assert (caught.value.status, caught.value.param) == (status, "x-priority-class")
    assert caught.value.message.startswith("x-priority-class: ")


def test_a_best_class_is_not_a_limit_that_is_counted() -> None:
    assert not ClientLimits(priority="batch").any


def series(*values: float) -> list[TimeStampedValue]:
    return [TimeStampedValue(at, value) for at, value in enumerate(values)]


def test_signals_are_of_replicas_that_have_said_everything() -> None:
    names = list(ReplicaSignals.__dataclass_fields__)
    metrics: dict[str, dict[Any, Any]] = {
        name: {"a": series(9.0, index), "b": series(1.0)} for index, name in enumerate(names)
    }
    del metrics["capacity"]["b"]
    metrics["running_requests"] = {"c": series(1.0)}
    assert signals_of(metrics) == [ReplicaSignals(0, 1, 2, 3, 4, 5)]
    assert signals_of({}) == []


def test_the_settings_are_the_policy() -> None:
    assert AutoscalingSettings(max_replicas=3).policy == ScalingPolicy(max_replicas=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_replicas": 4, "max_replicas": 3},
        {"max_replicas": 3, "low_use": 0.9},
        {"max_replicas": 0},
        {},
    ],
)
def test_settings_that_contradict_themselves_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings.model_validate({"id": "a", "path": "tiny:demo", "autoscaling": wrong})
