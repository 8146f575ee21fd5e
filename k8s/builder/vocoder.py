"""From frames to sound."""

from __future__ import annotations

from deployments.metrics import definitions as m
from k8s.builder.expressions import rate, ratio, share_within, total
from k8s.builder.grafana import Dashboard, Panel, Query
from k8s.builder.parts import VARIABLES, per_replica, quantiles

VOCODER = Dashboard(
    "vocoder",
    "speechlm: vocoder",
    "From frames to sound: how long it takes, how it is batched, what a player notices.",
    VARIABLES,
    {
        "Decoding": [
            Panel(
                "From frames to audio",
                "From handing frames to the vocoder until their audio is there.",
                quantiles(m.VOCODER_WAIT_SECONDS),
                "s",
            ),
            Panel(
                "Windows in a batch",
                "Mean size of a batch; small batches waste a GPU.",
                per_replica(
                    ratio(rate(m.VOCODER_WINDOWS, "replica"), rate(m.VOCODER_BATCHES, "replica"))
                ),
                "none",
            ),
            Panel(
                "Time of a batch",
                "Mean time that a batch takes to decode.",
                per_replica(
                    ratio(rate(m.VOCODER_SECONDS, "replica"), rate(m.VOCODER_BATCHES, "replica"))
                ),
                "s",
            ),
            Panel(
                "Queue",
                "Windows that wait to be decoded.",
                per_replica(total(m.VOCODER_QUEUE, "replica")),
                "none",
            ),
            Panel(
                "Busy",
                "Share of the time that the vocoder is decoding. Near 1 it is what limits.",
                per_replica(total(m.VOCODER_BUSY, "replica")),
                "percentunit",
                bad_above=0.9,
            ),
            Panel(
                "Streams",
                "Streams that the vocoder remembers.",
                per_replica(total(m.VOCODER_STREAMS, "replica")),
                "none",
            ),
        ],
        "What a player notices": [
            Panel(
                "Gaps",
                "Time between two pieces of audio of a request.",
                quantiles(m.AUDIO_GAP_SECONDS),
                "s",
            ),
            Panel(
                "Standstill",
                "How long a player that begins with the first piece would stand still at most.",
                quantiles(m.UNDERRUN_SECONDS),
                "s",
                bad_above=0.2,
            ),
            Panel(
                "Continuity",
                "C50, C100, C200: share of requests whose worst standstill is shorter.",
                [
                    Query(share_within(bound, m.UNDERRUN_SECONDS, "model"), f"{{{{model}}}} {name}")
                    for name, bound in (("C50", 0.05), ("C100", 0.1), ("C200", 0.2))
                ],
                "percentunit",
                bad_below=0.99,
            ),
        ],
        "Audio from clients": [
            Panel(
                "Encoding",
                "From handing a clip to the encoder until its codes are there.",
                quantiles(m.ENCODE_SECONDS),
                "s",
            ),
            Panel(
                "Encoded audio",
                "Seconds of audio that are encoded in a second.",
                [Query(rate(m.ENCODED_AUDIO), "{{model}}")],
                "short",
            ),
            Panel(
                "Waiting clips",
                "Clips that wait for the encoder or are in it.",
                per_replica(total(m.ENCODER_WAITING, "replica")),
                "none",
            ),
        ],
    },
)
