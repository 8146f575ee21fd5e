"""What a front end measures of a request, from its record."""

from collections.abc import Iterator
from typing import Any

import pytest

from cfg_pairing.admission import PRIORITIES, Priority
from deployments.calls.messages import Refused
from deployments.front_end.errors import ApiError
from deployments.guards.audit import AuditRecord
from deployments.metrics import emit, requests
from deployments.metrics.sinks import PrometheusSink
from tests.unit.deployments.speaking_stand_in import GOOD, StandIn, client

SPEECH = {"endpoint": "/v1/audio/speech", "model": "m"}
DEMO = {"endpoint": "/v1/audio/speech", "model": "demo"}


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    sink = PrometheusSink()
    with emit.using(sink):
        yield sink


def value(sink: PrometheusSink, name: str, **labels: str) -> float | None:
    return sink.registry.get_sample_value(f"speechlm_{name}", {**SPEECH, **labels})


def record(**fields: Any) -> AuditRecord:
    return AuditRecord(
        **{
            "request_id": "r",
            "method": "POST",
            "path": "/v1/audio/speech",
            "model": "m",
            "status": 200,
            "total_seconds": 3.0,
            **fields,
        }
    )


def test_a_request_that_was_answered(sink: PrometheusSink) -> None:
    requests.ended(record(end="complete", finish_reason="stop", cfg_scale=1.5, queue_seconds=0.25))
    counted = {"status": "200", "finish_reason": "stop", "guided": "true"}
    assert value(sink, "requests_total", **counted) == 1
    assert value(sink, "request_seconds_exact_total") == 3
    assert value(sink, "queue_seconds_exact_total", priority="standard") == 0.25


def test_the_first_audio_counts_once_from_the_moment_it_was_asked_for(
    sink: PrometheusSink,
) -> None:
    answered = record(cfg_scale=1.5)
    assert answered.asked is not None
    answered.asked -= 2.0
    answered.made(bytes(32_000), 16_000)
    answered.made(bytes(32_000), 16_000)
    labels = {"guided": "true", "priority": "standard"}
    assert value(sink, "time_to_first_audio_seconds_count", **labels) == 1
    seconds = value(sink, "time_to_first_audio_seconds_exact_total", **labels)
    assert seconds is not None
    assert 2 <= seconds < 3
    assert answered.output_seconds == 2


@pytest.mark.parametrize(
    ("fields", "phase"),
    [
        ({}, "waiting"),
        ({"queue_seconds": 0.5}, "silent"),
        ({"queue_seconds": 0.5, "output_seconds": 1.0}, "audio"),
    ],
)
def test_a_client_that_left(sink: PrometheusSink, fields: dict[str, Any], phase: str) -> None:
    requests.ended(record(end="cancelled", status=None, **fields))
    counted = {"status": "none", "finish_reason": "cancelled", "guided": "false"}
    assert value(sink, "requests_total", **counted) == 1
    assert value(sink, "cancelled_requests_total", phase=phase) == 1


def test_a_request_for_which_there_was_no_room(sink: PrometheusSink) -> None:
    refused = record(end="complete", status=429)
    refused.denied(ApiError(429, "no", code="concurrent_requests"))
    requests.ended(refused)
    assert value(sink, "refused_requests_total", reason="concurrent_requests") == 1
    counted = {"status": "429", "finish_reason": "none", "guided": "false"}
    assert value(sink, "requests_total", **counted) == 1


def test_an_error_of_the_client_is_no_refusal(sink: PrometheusSink) -> None:
    wrong = record(end="complete", status=400)
    wrong.denied(ApiError(400, "no"))
    requests.ended(wrong)
    assert "refused" not in sink.text()


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/v1/audio/speech", "/v1/audio/speech"),
        ("/v1/audio/speech/stream", "/v1/audio/speech/stream"),
        ("/v1/audio/voices/v-17", "/v1/audio/voices"),
        ("/v1/models/org/name", "/v1/models"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/nothing", "other"),
        ("/v1/modelsx", "other"),
        ("/../etc", "other"),
    ],
)
def test_paths_that_clients_make_up_make_no_series(path: str, endpoint: str) -> None:
    assert requests.endpoint_of(path) == endpoint


async def test_requests_over_http_are_measured(sink: PrometheusSink) -> None:
    full = StandIn([Refused(429, "no room")])
    async with client(StandIn()) as http, client(full) as refusing:
        await http.post("/v1/audio/speech", json=GOOD)
        await http.post("/v1/audio/speech", json={**GOOD, "cfg_scale": 1})
        await http.post("/v1/audio/speech", json={**GOOD, "model": "made-up"})
        await refusing.post("/v1/audio/speech", json=GOOD)
        await http.get("/live")
    for guided in ("true", "false"):  # what does not say is guided as the model is
        counted = {"status": "200", "finish_reason": "stop", "guided": guided}
        assert value(sink, "requests_total", **DEMO, **counted) == 1
        heard = {"guided": guided, "priority": "standard"}
        assert value(sink, "time_to_first_audio_seconds_count", **DEMO, **heard) == 1
    unknown = {"status": "404", "finish_reason": "none", "guided": "false", "model": "none"}
    assert value(sink, "requests_total", **unknown) == 1
    assert value(sink, "refused_requests_total", **DEMO, reason="rate_limit_exceeded") == 1
    assert value(sink, "queue_seconds_count", **DEMO, priority="standard") == 2
    assert "live" not in sink.text()


@pytest.mark.parametrize("priority", PRIORITIES)
async def test_waits_are_measured_by_the_class_of_a_request(
    sink: PrometheusSink, priority: Priority
) -> None:
    async with client(StandIn()) as http:
        headers = {"x-priority-class": priority}
        await http.post("/v1/audio/speech", json={**GOOD, "cfg_scale": 1}, headers=headers)
    for other in PRIORITIES:
        count = 1 if other == priority else None
        assert value(sink, "queue_seconds_count", **DEMO, priority=other) == count
        heard = {"guided": "false", "priority": other}
        assert value(sink, "time_to_first_audio_seconds_count", **DEMO, **heard) == count
