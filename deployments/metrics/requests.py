"""What a front end measures of a request, from its record for the audit log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deployments.metrics import definitions as d
from deployments.metrics import emit

if TYPE_CHECKING:
    from deployments.guards.audit import AuditRecord

_NONE = "none"
_ENDPOINTS = re.compile(
    r"(/v1/(?:audio/(?:speech/stream|speech|transcriptions|voices)|chat/completions|models))(?:/.+)?"
)


def endpoint_of(path: str) -> str:
    """The endpoint of a path, without ids; ``other`` if there is none, whatever clients try."""
    found = _ENDPOINTS.fullmatch(path)
    return found[1] if found else "other"


def first_audio(record: AuditRecord, seconds: float) -> None:
    """A request has its first audio after so many seconds."""
    labels = _labels(record) | {"guided": _guided(record), "priority": record.priority}
    emit.observe(d.TIME_TO_FIRST_AUDIO, seconds, **labels)


def ended(record: AuditRecord) -> None:
    """A request has ended; its record is complete."""
    labels = _labels(record)
    whole = record.end == "complete"
    emit.add(
        d.REQUESTS,
        **labels,
        status=str(record.status or _NONE),
        finish_reason=(record.finish_reason or _NONE) if whole else record.end,
        guided=_guided(record),
    )
    emit.observe(d.REQUEST_SECONDS, record.total_seconds, **labels)
    if record.queue_seconds is not None:
        emit.observe(d.QUEUE_SECONDS, record.queue_seconds, **labels, priority=record.priority)
    if record.refused is not None:
        emit.add(d.REFUSED, **labels, reason=record.refused)
    if record.end == "cancelled":
        emit.add(d.CANCELLED, **labels, phase=_phase(record))


def _labels(record: AuditRecord) -> dict[str, str]:
    return {"endpoint": endpoint_of(record.path), "model": record.model or _NONE}


def _guided(record: AuditRecord) -> str:
    return str(record.guided).lower()


def _phase(record: AuditRecord) -> str:
    if record.queue_seconds is None:
        return "waiting"
    return "audio" if record.output_seconds else "silent"
