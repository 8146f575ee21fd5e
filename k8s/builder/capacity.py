"""How full the replicas are, and what audio costs."""

from __future__ import annotations

from deployments.metrics import definitions as m
from k8s.builder.expressions import rate, ratio, series, total
from k8s.builder.grafana import Dashboard, Panel, Query, Variable
from k8s.builder.parts import VARIABLES, per_replica, stat

# Ray's own, of whole nodes.
NODE_CPU = "ray_node_cpu_utilization"
NODE_MEMORY_USED = "ray_node_mem_used"
NODE_MEMORY_TOTAL = "ray_node_mem_total"
_REPLICAS = f"count({series(m.REPLICA_CAPACITY)})"

CAPACITY = Dashboard(
    "capacity",
    "speechlm: capacity and cost",
    "How full the replicas are, what a second of audio costs, and what runs.",
    (*VARIABLES, Variable("price", default="2.50")),
    {
        "Capacity": [
            stat("Replicas", "Engine replicas.", _REPLICAS, "none"),
            stat(
                "Requests in service",
                "Share of the requests that replicas take at a time.",
                ratio(f"sum({series(m.REPLICA_REQUESTS)})", f"sum({series(m.REPLICA_CAPACITY)})"),
                "percentunit",
                bad_above=0.9,
            ),
            stat(
                "Rows in use",
                "Share of all batches' rows.",
                ratio(f"sum({series(m.ROWS_RUNNING)})", f"sum({series(m.ROWS_CAPACITY)})"),
                "percentunit",
                bad_above=0.9,
            ),
            stat(
                "Audio per replica",
                "Seconds of audio that a replica makes in a second.",
                ratio(
                    rate(m.AUDIO_SECONDS, "model"),
                    f"count by (model) ({series(m.REPLICA_CAPACITY)})",
                ),
                "short",
            ),
            stat(
                "Cost of an hour of audio",
                "Replicas times the price of a replica's hour (the field above), over the audio "
                "that they make in an hour.",
                ratio(f"$price * {_REPLICAS}", f"sum(rate({series(m.AUDIO_SECONDS)}[$__range]))"),
                "currencyUSD",
            ),
            stat(
                "Audio in the time shown",
                "Seconds of audio that were made.",
                f"sum(increase({series(m.AUDIO_SECONDS)}[$__range]))",
                "s",
            ),
            Panel(
                "Requests and places",
                "Requests that replicas serve, and those that they take at a time.",
                [
                    Query(total(m.REPLICA_REQUESTS), "{{model}} served"),
                    Query(total(m.REPLICA_CAPACITY), "{{model}} places"),
                ],
                "none",
            ),
            Panel(
                "Waiting for rows",
                "Requests in the replicas' own queues, by class.",
                [Query(total(m.ADMISSION_WAITING, "model, priority"), "{{model}} {{priority}}")],
                "none",
                stacked=True,
            ),
            Panel(
                "Audio owed",
                "Audio that requests are still to get, waiting ones included.",
                [Query(total(m.AUDIO_OWED), "{{model}}")],
                "s",
            ),
            Panel(
                "Balance",
                "Rows in use per replica: the router keeps them alike.",
                per_replica(
                    ratio(total(m.ROWS_RUNNING, "replica"), total(m.ROWS_CAPACITY, "replica"))
                ),
                "percentunit",
            ),
            Panel(
                "Replicas",
                "Replicas that report, and those that are healthy.",
                [
                    Query(f"count by (model) ({series(m.REPLICA_CAPACITY)})", "{{model}}"),
                    Query(total(m.REPLICA_HEALTHY), "{{model}} healthy"),
                ],
                "none",
            ),
            Panel(
                "Audio",
                "Seconds of audio made in a second.",
                [Query(rate(m.AUDIO_SECONDS, "model, task"), "{{model}} {{task}}")],
                "short",
                stacked=True,
            ),
        ],
        "Machines": [
            Panel(
                "CPU",
                "Of Ray's nodes, in percent.",
                [Query(f'{NODE_CPU}{{namespace=~"$namespace"}}', "{{pod}}{{instance}}")],
                "none",
            ),
            Panel(
                "Memory",
                "Share in use on Ray's nodes. Near 1 Ray ends processes.",
                [
                    Query(
                        ratio(
                            f'{NODE_MEMORY_USED}{{namespace=~"$namespace"}}',
                            f'{NODE_MEMORY_TOTAL}{{namespace=~"$namespace"}}',
                        ),
                        "{{pod}}{{instance}}",
                    )
                ],
                "percentunit",
                bad_above=0.9,
            ),
            Panel(
                "GPU memory by part",
                "What PyTorch holds in engine and vocoder.",
                [Query(f"sum by (replica, part) ({series(m.GPU_MEMORY)})", "{{replica}} {{part}}")],
                "bytes",
            ),
            Panel(
                "GPU memory of the device",
                "Used by whomever, and there.",
                [
                    Query(
                        f"sum by (replica, state) ({series(m.GPU_DEVICE_MEMORY)})",
                        "{{replica}} {{state}}",
                    )
                ],
                "bytes",
            ),
            Panel(
                "What runs",
                "Versions of each replica.",
                [Query(f"count by (version, vllm, ray, torch) ({series(m.BUILD_INFO)})")],
                "none",
                "table",
            ),
        ],
    },
)
