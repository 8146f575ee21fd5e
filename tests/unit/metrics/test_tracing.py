"""Spans of a request, sent as OTLP to a collector that listens here."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deployments import tracing
from deployments.metrics.answers import AnswerMeter
from deployments.metrics.clips import ClipMeter
from deployments.replica.vocoding import Vocoding
from deployments.settings import TracingSettings
from tests.collector import PARENT, TRACE, Collector, collecting, headers
from tests.unit.deployments.speaking_stand_in import GOOD, StandIn, client
from vocoder_service.actor import CodecInfo, Decoded
from vocoder_service.schedule import WindowSchedule


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        tracing.begin(TracingSettings(endpoint=collector.endpoint), "test")
        yield collector
        tracing.end()


def received(collector: Collector) -> dict[str, Span]:
    """By name, all that were recorded until now."""
    tracing.end()
    return {span.name: span for span in collector.spans}


def test_the_parts_of_a_request_are_children_of_its_span(collector: Collector) -> None:
    span = tracing.root("POST /v1/audio/speech", headers(), request_id="r")
    trace = tracing.trace_of(span)
    now = time.monotonic()
    tracing.record("prefill", trace, now - 2, now - 1.5, rows=3)
    assert span is not None
    span.end()
    spans = received(collector)
    root, prefill = spans["POST /v1/audio/speech"], spans["prefill"]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert (prefill.trace_id, prefill.parent_span_id) == (root.trace_id, root.span_id)
    seconds = (prefill.end_time_unix_nano - prefill.start_time_unix_nano) / 1e9
    assert seconds == pytest.approx(0.5, abs=1e-6)
    assert time.time() - prefill.end_time_unix_nano / 1e9 == pytest.approx(1.5, abs=1)
    assert [(a.key, a.value.int_value) for a in prefill.attributes] == [("rows", 3)]
    assert collector.services == {"speechlm-test"}


def test_a_client_may_say_that_it_wants_no_spans(collector: Collector) -> None:
    span = tracing.root("POST /v1/audio/speech", headers("00"))
    tracing.record("prefill", tracing.trace_of(span), 0.0)
    assert received(collector) == {}


@pytest.mark.parametrize("given", ["", "00-zz-1-01", f"00-{'0' * 32}-{PARENT}-01"])
def test_a_header_that_is_no_trace_begins_a_new_one(collector: Collector, given: str) -> None:
    span = tracing.root("GET /v1/models", {"traceparent": given})
    assert span is not None
    span.end()
    assert received(collector)["GET /v1/models"].parent_span_id == b""


def test_without_a_collector_nothing_is_recorded() -> None:
    tracing.begin(TracingSettings(), "test")
    assert tracing.root("GET /v1/models", headers()) is None
    assert tracing.trace_of(None) is None
    tracing.record("prefill", None, 0.0)


async def test_a_request_over_http_has_its_span_and_passes_it_on(collector: Collector) -> None:
    engines = StandIn()
    async with client(engines) as http:
        answer = await http.post(
            "/v1/audio/speech", json=GOOD, headers={**headers(), "x-request-id": "mine"}
        )
        await http.get("/live", headers=headers())
    assert answer.status_code == 200
    spans = received(collector)
    assert set(spans) == {"POST /v1/audio/speech", "queue"}
    root = spans["POST /v1/audio/speech"]
    assert root.trace_id.hex() == TRACE
    assert spans["queue"].parent_span_id == root.span_id
    assert engines.calls[0].trace == f"00-{TRACE}-{root.span_id.hex()}-01"
    attributes = {attribute.key: attribute.value for attribute in root.attributes}
    assert attributes["request_id"].string_value == "mine"
    assert attributes["status"].int_value == 200
    assert attributes["finish_reason"].string_value == "stop"


async def test_a_replica_has_a_span_for_each_part_of_its_work(collector: Collector) -> None:
    async def decode(*_: object) -> Decoded:
        return Decoded(b"pcm!", 0.0)

    codec, vocoder = CodecInfo(16_000, 320, 4, 64, 2), SimpleNamespace(finish=SimpleNamespace())
    vocoder.finish.remote = decode
    span = tracing.root("POST /v1/chat/completions", headers())
    trace = tracing.trace_of(span)
    assert span is not None
    meter = AnswerMeter("conversation", guided=False, sample_rate=16_000, trace=trace)
    with ClipMeter().clip(2.0, trace):
        pass
    meter.rows(1)
    meter.audio(await Vocoding(vocoder, codec, WindowSchedule(), 0).stream("r", trace).finish())
    meter.closed()
    span.end()
    spans = received(collector)
    root = spans.pop("POST /v1/chat/completions")
    assert set(spans) == {"encode", "prefill", "vocoder", "audio"}
    assert {part.parent_span_id for part in spans.values()} == {root.span_id}
