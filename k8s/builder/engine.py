"""The batch of each replica, its memory, its pairs."""

from __future__ import annotations

from deployments.metrics import definitions as m
from k8s.builder.expressions import count_rate, mean, quantile, rate, ratio, series, total
from k8s.builder.grafana import Dashboard, Panel, Query
from k8s.builder.parts import VARIABLES, per_replica, stat

ENGINE = Dashboard(
    "engine",
    "speechlm: engine and pairs",
    "The batch of each replica, its memory, and whether guidance is whole.",
    VARIABLES,
    {
        "Must be zero": [
            stat(
                "Unguided frames",
                "Frames of guided requests that were sampled without guidance.",
                f"sum({series(m.UNGUIDED_FRAMES)})",
                "none",
                bad_above=1,
            ),
            stat(
                "Split pairs",
                "Pairs that were scheduled with one row missing.",
                f"sum({series(m.PAIR_ROWS_SPLIT)})",
                "none",
                bad_above=1,
            ),
            stat(
                "Out of memory",
                "Requests that failed for want of memory, in the time that is shown.",
                f"sum(increase({series(m.OUT_OF_MEMORY)}[$__range]))",
                "none",
                bad_above=1,
            ),
            stat(
                "Rows in use",
                "Share of the batches' rows.",
                ratio(total(m.ROWS_RUNNING), total(m.ROWS_CAPACITY)),
                "percentunit",
            ),
            stat(
                "KV cache in use",
                "Share of its blocks, all replicas together.",
                ratio(total(m.KV_BLOCKS_USED), total(m.KV_BLOCKS_CAPACITY)),
                "percentunit",
                bad_above=0.95,
            ),
            stat(
                "Frames per second",
                "Frames that engines sample; a pair's counts once.",
                rate(m.FRAMES),
                "short",
            ),
        ],
        "Batch": [
            Panel(
                "Rows",
                "Running, waiting and possible, per replica.",
                [
                    Query(total(m.ROWS_RUNNING, "replica"), "running {{replica}}"),
                    Query(total(m.ROWS_WAITING, "replica"), "waiting {{replica}}"),
                    Query(total(m.ROWS_CAPACITY, "replica"), "capacity {{replica}}"),
                ],
                "none",
            ),
            Panel(
                "KV cache",
                "Share of blocks in use, per replica. At 1 the youngest requests give theirs back.",
                per_replica(
                    ratio(
                        total(m.KV_BLOCKS_USED, "replica"),
                        total(m.KV_BLOCKS_CAPACITY, "replica"),
                    )
                ),
                "percentunit",
                bad_above=0.95,
            ),
            Panel(
                "Preemptions",
                "Times per second that a request had to give its rows and blocks back.",
                per_replica(rate(m.PREEMPTIONS, "replica")),
                "ops",
            ),
            Panel(
                "Step",
                "Duration of an engine step.",
                [
                    Query(mean(m.STEP_SECONDS, "replica"), "mean {{replica}}"),
                    Query(quantile(0.95, m.STEP_SECONDS, "replica"), "p95 {{replica}}"),
                ],
                "s",
            ),
            Panel(
                "Rows per step",
                "Rows that a step computes, those of prompts and guidance included.",
                per_replica(
                    ratio(rate(m.STEP_TOKENS, "replica"), count_rate(m.STEP_SECONDS, "replica"))
                ),
                "none",
            ),
            Panel(
                "Utterances and answers",
                "What the engine has ended, by outcome, per second.",
                [Query(rate(m.ENGINE_REQUESTS, "outcome"), "{{outcome}}")],
                "ops",
                stacked=True,
            ),
        ],
        "Guidance": [
            Panel(
                "Pairs",
                "What happens to guided requests, per second.",
                [Query(rate(m.PAIRS, "event"), "{{event}}")],
                "ops",
            ),
            Panel(
                "First token by guidance",
                "TTFT of guided and plain requests, p95.",
                [Query(quantile(0.95, m.TIME_TO_FIRST_TOKEN, "guided"), "guided: {{guided}}")],
                "s",
            ),
            Panel(
                "Time per frame by guidance",
                "TPOT of guided and plain requests, mean.",
                [Query(mean(m.TIME_PER_OUTPUT_FRAME, "guided"), "guided: {{guided}}")],
                "s",
            ),
        ],
    },
)
