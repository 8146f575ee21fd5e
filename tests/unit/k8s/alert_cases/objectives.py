"""Objectives: 1 % of requests may miss them."""

from __future__ import annotations

from tests.unit.k8s.alert_cases.case import QUEUE, Case

TTFA = "ray_speechlm_time_to_first_audio_seconds"
IN_TIME = TTFA + "_bucket{%s, priority=P, le="
RTF = "ray_speechlm_real_time_factor"

CASES = [
    Case(
        "a fifth of first audio is late",
        {IN_TIME + "'1.0'}": "0+48x400"},
        12,
        ("SpeechTtfaBurnFast",),
    ),
    Case(
        "an exporter that writes 1 for 1.0",
        {IN_TIME + "'1'}": "0+48x400"},
        12,
        ("SpeechTtfaBurnFast",),
    ),
    Case(
        "a tenth of first audio is late all the time",
        {IN_TIME + "'1.0'}": "0+54x400"},
        40,
        ("SpeechTtfaBurnSlow",),
    ),
    Case(
        "one in a hundred is late, and one too slow",
        {
            IN_TIME + "'1.0'}": "0+59.4x400",
            RTF + "_bucket{%s, replica=R, le='1.0'}": "0+59.4x400",
        },
        60,
    ),
    Case(
        "first audio was late, and is not any more",
        {IN_TIME + "'1.0'}": "0+30x30 960+60x400"},
        70,
    ),
    Case(
        "batch requests wait for half a minute, as they may",
        {
            IN_TIME + "'1.0'}": "0+60x400",
            IN_TIME.replace("=P", "='batch'") + "'1.0'}": "0x400",
            TTFA + "_count{%s, priority=P}": "0+60x400",
            TTFA + "_count{%s, priority='batch'}": "0+60x400",
        }
        | {QUEUE + f"'{le}'}}": "0+60x400" for le in ("0.1", "10.0", "+Inf")}
        | {
            QUEUE.replace("=P", "='batch'") + f"'{le}'}}": values
            for le, values in (("0.1", "0x400"), ("10.0", "0x400"), ("+Inf", "0+60x400"))
        },
        60,
    ),
    Case(
        "realtime requests wait while others do not",
        {
            IN_TIME + "'1.0'}": "0+60x400",
            IN_TIME.replace("=P", "='realtime'") + "'1.0'}": "0x400",
            TTFA + "_count{%s, priority=P}": "0+60x400",
            TTFA + "_count{%s, priority='realtime'}": "0+60x400",
        },
        12,
        ("SpeechTtfaBurnFast",),
    ),
    Case(
        "a fifth of audio is too slow",
        {RTF + "_bucket{%s, replica=R, le='1.0'}": "0+48x400"},
        12,
        ("SpeechRtfBurnFast",),
    ),
    Case(
        "a tenth of audio is too slow all the time",
        {RTF + "_bucket{%s, replica=R, le='1.0'}": "0+54x400"},
        40,
        ("SpeechRtfBurnSlow",),
    ),
]
