"""Spans of a request, sent as OTLP to a collector that listens here."""

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deployments import tracing
from deployments.settings import TracingSettings
from tests.unit.deployments.speaking_stand_in import GOOD, StandIn, client

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """
    Attributes:
        spans: that have come.
        services: that they have come from.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for attribute in resource.resource.attributes:
                        if attribute.key == "service.name":
                            collector.services.add(attribute.value.string_value)
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.settings = TracingSettings(
            endpoint=f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        )

    def received(self) -> dict[str, Span]:
        """By name, all that were recorded until now."""
        tracing.end()
        return {span.name: span for span in self.spans}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    Thread(target=collector.server.serve_forever, daemon=True).start()
    tracing.begin(collector.settings, "test")
    yield collector
    tracing.end()
    collector.server.shutdown()
    collector.server.server_close()


def headers(flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{TRACE}-{PARENT}-{flags}"}


def test_the_parts_of_a_request_are_children_of_its_span(collector: Collector) -> None:
    span = tracing.root("POST /v1/audio/speech", headers(), request_id="r")
    trace = tracing.trace_of(span)
    now = time.monotonic()
    tracing.record("prefill", trace, now - 2, now - 1.5, rows=3)
    assert span is not None
    span.end()
    spans = collector.received()
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
    assert collector.received() == {}


@pytest.mark.parametrize("given", ["", "00-zz-1-01", f"00-{'0' * 32}-{PARENT}-01"])
def test_a_header_that_is_no_trace_begins_a_new_one(collector: Collector, given: str) -> None:
    span = tracing.root("GET /v1/models", {"traceparent": given})
    assert span is not None
    span.end()
    assert collector.received()["GET /v1/models"].parent_span_id == b""


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
    spans = collector.received()
    assert set(spans) == {"POST /v1/audio/speech", "queue"}
    root = spans["POST /v1/audio/speech"]
    assert root.trace_id.hex() == TRACE
    assert spans["queue"].parent_span_id == root.span_id
    assert engines.calls[0].trace == f"00-{TRACE}-{root.span_id.hex()}-01"
    attributes = {attribute.key: attribute.value for attribute in root.attributes}
    assert attributes["request_id"].string_value == "mine"
    assert attributes["status"].int_value == 200
    assert attributes["finish_reason"].string_value == "stop"
