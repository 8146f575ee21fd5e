"""Requests that fail, are refused or wait."""

from __future__ import annotations

from tests.unit.k8s.alert_cases.case import ELSEWHERE, QUEUE, Case

REQUESTS = "ray_speechlm_requests_total{%s, status="

CASES = [
    Case(
        "a tenth of requests gets 500",
        {
            REQUESTS + "'200', finish_reason='stop'}": "0+54x400",
            REQUESTS + "'500', finish_reason='none'}": "0+6x400",
        },
        15,
        ("SpeechErrors",),
    ),
    Case(
        "a tenth of answers breaks off",
        {
            REQUESTS + "'200', finish_reason='stop'}": "0+54x400",
            REQUESTS + "'200', finish_reason='failed'}": "0+6x400",
        },
        15,
        ("SpeechErrors",),
    ),
    Case(
        "nothing but 503",
        {REQUESTS + "'503', finish_reason='none'}": "0+60x400"},
        15,
        ("SpeechErrors",),
    ),
    Case(
        "clients that leave are no errors",
        {REQUESTS + "'200', finish_reason='cancelled'}": "0+60x400"},
        60,
    ),
    Case(
        "one request in a hundred fails",
        {
            REQUESTS + "'200', finish_reason='stop'}": "0+99x400",
            REQUESTS + "'500', finish_reason='none'}": "0+1x400",
        },
        60,
    ),
    Case(
        "half of the requests are refused",
        {
            REQUESTS + "'200', finish_reason='stop'}": "0+30x400",
            REQUESTS + "'429', finish_reason='none'}": "0+30x400",
        },
        30,
        ("SpeechRefused",),
    ),
    Case(
        "one in fifty is refused",
        {
            REQUESTS + "'200', finish_reason='stop'}": "0+49x400",
            REQUESTS + "'429', finish_reason='none'}": "0+1x400",
        },
        60,
    ),
    Case(
        "rows that wait become more",
        {"ray_speechlm_rows_waiting{%s, replica=R}": "0+4x400"},
        20,
        ("SpeechQueueGrowing",),
    ),
    Case(
        "requests that wait for rows become more",
        {"ray_speechlm_admission_waiting{%s, replica=R, priority='batch'}": "0+4x400"},
        20,
        ("SpeechQueueGrowing",),
    ),
    Case(
        "a burst that is worked off",
        {"ray_speechlm_rows_waiting{%s, replica=R}": "60-2x30 0x400"},
        15,
    ),
    Case("a queue that stays small", {"ray_speechlm_rows_waiting{%s, replica=R}": "8x400"}, 60),
    Case(
        "requests wait for six seconds",
        {
            QUEUE + "'0.1'}": "0+30x400",
            QUEUE + "'10.0'}": "0+60x400",
            QUEUE + "'+Inf'}": "0+60x400",
        },
        30,
        ("SpeechQueueSlow",),
    ),
    Case(
        "another namespace has errors, which its own rules tell",
        {"ray_speechlm_requests_total{" + ELSEWHERE + ", status='500'}": "0+60x400"},
        20,
    ),
]
