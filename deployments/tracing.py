"""Spans of requests, in OpenTelemetry's terms; none unless the settings name a collector.

A *trace* is the place of a request in somebody's trace, in the words of W3C's ``traceparent``; it
travels with the request, and None if nobody wants spans. Spans are recorded when they have
ended, since that is when it is known what they were. Times are of ``time.monotonic``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from deployments.settings import TracingSettings

_PARENT = "traceparent"
_W3C = TraceContextTextMapPropagator()

_provider: TracerProvider | None = None


def begin(settings: TracingSettings, part: str) -> None:
    """Has the spans of this process sent to the collector, if there is one.

    Args:
        part: of the service that this process is.
    """
    if settings.endpoint is not None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        use(OTLPSpanExporter(endpoint=settings.endpoint), part, settings.share)


def use(exporter: SpanExporter, part: str, share: float = 1.0) -> None:
    """Has the spans of this process go to ``exporter`` from now on.

    Args:
        share: of the requests, for those whose client does not say whether it wants spans.
    """
    global _provider
    _provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(share)),
        resource=Resource({"service.name": f"speechlm-{part}"}),
    )
    _provider.add_span_processor(BatchSpanProcessor(exporter))


def end() -> None:
    """Sends what is left, and records nothing any more."""
    global _provider
    if _provider is not None:
        _provider.shutdown()
        _provider = None


def root(name: str, headers: Mapping[str, str], **attributes: Any) -> Span | None:
    """The span of a request, which the caller ends; None if nobody wants it.

    Args:
        headers: of the request; a ``traceparent`` that cannot be read counts as none.
    """
    if _provider is None:
        return None
    span = _tracer(_provider).start_span(name, _W3C.extract(headers), attributes=attributes)
    return span if isinstance(span, Span) else None


def trace_of(span: Span | None) -> str | None:
    """What the parts of a request are told of its span."""
    if span is None:
        return None
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span))
    return carrier[_PARENT]


def record(
    name: str, trace: str | None, began: float, ended: float | None = None, **attributes: Any
) -> None:
    """A part of a request that has ended.

    Args:
        ended: now, if None.
    """
    if trace is None or _provider is None:
        return
    parent = _W3C.extract({_PARENT: trace})
    now, wall = time.monotonic(), time.time_ns()

    def at(moment: float) -> int:
        return wall - round((now - moment) * 1e9)

    span = _tracer(_provider).start_span(name, parent, attributes=attributes, start_time=at(began))
    span.end(at(now if ended is None else ended))


def _tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("speechlm")
