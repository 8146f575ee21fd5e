"""Whether clients get what was promised."""

from __future__ import annotations

from deployments.metrics import definitions as m
from k8s.builder.expressions import rate, ratio, share_within, total
from k8s.builder.grafana import Dashboard, Panel, Query
from k8s.builder.parts import VARIABLES, quantiles, stat

_ERRORS = 'status=~"5..", finish_reason!="failed"'
_BROKEN_OFF = 'finish_reason="failed"'
# Nobody listens yet to what is asked for as batch, which may wait.
_LISTENED_TO = 'priority!="batch"'


def _failures() -> str:
    """The share of requests that ended with an error of ours or whose answer is not whole."""
    every = rate(m.REQUESTS)
    parts = [f"({rate(m.REQUESTS, extra=e)} or 0 * {every})" for e in (_ERRORS, _BROKEN_OFF)]
    return ratio(f"({' + '.join(parts)})", every)


OVERVIEW = Dashboard(
    "overview",
    "speechlm: overview",
    "Whether clients get what was promised, and how much they ask for.",
    VARIABLES,
    {
        "Promises": [
            stat(
                "First audio within 1 s",
                "Share of requests, those of the class batch left out; the objective is 99 %.",
                share_within(1.0, m.TIME_TO_FIRST_AUDIO, extra=_LISTENED_TO),
                "percentunit",
                bad_below=0.99,
            ),
            stat(
                "Faster than it plays",
                "Share of requests with a real-time factor of at most 1; the objective is 99 %.",
                share_within(1.0, m.REAL_TIME_FACTOR),
                "percentunit",
                bad_below=0.99,
            ),
            stat(
                "Failed requests",
                "Answered with 5xx, or begun and not finished; the objective is below 1 %.",
                _failures(),
                "percentunit",
                bad_above=0.01,
            ),
            stat(
                "No standstill of 200 ms",
                "C200: share of requests whose player would never stand still for 200 ms.",
                share_within(0.2, m.UNDERRUN_SECONDS),
                "percentunit",
                bad_below=0.99,
            ),
            stat(
                "Healthy replicas",
                "Replicas whose engine and vocoder answer.",
                total(m.REPLICA_HEALTHY),
                "none",
                bad_below=1,
            ),
            stat(
                "Audio seconds per second",
                "Audio made in a second, all requests together.",
                rate(m.AUDIO_SECONDS),
                "short",
            ),
        ],
        "Speed": [
            Panel(
                "Time to first audio",
                "TTFA: from the arrival of a request to the first audio for its client. Without "
                "the class batch.",
                quantiles(m.TIME_TO_FIRST_AUDIO, extra=_LISTENED_TO),
                "s",
                bad_above=1.0,
            ),
            Panel(
                "Real-time factor",
                "RTF: time to make the audio of a request over its duration.",
                quantiles(m.REAL_TIME_FACTOR),
                "none",
                bad_above=1.0,
            ),
            Panel(
                "Queue",
                "From the arrival of a request until a replica has accepted it, by class.",
                quantiles(m.QUEUE_SECONDS, by="priority"),
                "s",
            ),
            Panel(
                "Time to first token",
                "TTFT: from acceptance to the first row of the engine.",
                quantiles(m.TIME_TO_FIRST_TOKEN),
                "s",
            ),
            Panel(
                "Time per frame",
                "TPOT: time per row after the first.",
                quantiles(m.TIME_PER_OUTPUT_FRAME),
                "s",
            ),
            Panel(
                "Whole requests",
                "From the arrival of a request to the end of its answer.",
                quantiles(m.REQUEST_SECONDS),
                "s",
            ),
        ],
        "Demand": [
            Panel(
                "Requests by status",
                "Requests that have ended, per second.",
                [Query(rate(m.REQUESTS, "endpoint, status"), "{{endpoint}} {{status}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "How answers ended",
                "failed: begun and not finished. cancelled: the client left.",
                [Query(rate(m.REQUESTS, "finish_reason"), "{{finish_reason}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Refused",
                "Requests refused with 429 or 503, by reason.",
                [Query(rate(m.REFUSED, "reason"), "{{reason}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Clients that left",
                "By what they had: waiting (no engine), silent (no audio yet), audio.",
                [Query(rate(m.CANCELLED, "phase"), "{{phase}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Missing in the audit log",
                "Requests that the audit log lacks, if there is one. Must be 0.",
                [Query(rate(m.AUDIT_LOST, "reason"), "{{reason}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Guided and plain",
                "A guided request takes two rows of the batch while it writes audio.",
                [Query(rate(m.REQUESTS, "guided"), "guided: {{guided}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Length of audio",
                "Duration of the audio of a request.",
                quantiles(m.AUDIO_LENGTH),
                "s",
            ),
        ],
    },
)
