"""Engines that are gone, do not report, lack memory or do not keep a pair together."""

from __future__ import annotations

from tests.unit.k8s.alert_cases.case import ELSEWHERE, Case

HEALTHY = "ray_speechlm_replica_healthy{%s, replica="
BUILD = "ray_speechlm_build_info{%s, replica=R}"
DESIRED = "ray_serve_autoscaling_desired_replicas{%d}"
STATUS = "ray_serve_deployment_status{%d}"
# Another model of this release.
ANOTHER = "namespace='speech', application='speechlm', deployment='engine-other'"
ANOTHER_DESIRED = "ray_serve_autoscaling_desired_replicas{" + ANOTHER + "}"
ANOTHER_STATUS = "ray_serve_deployment_status{" + ANOTHER + "}"

CASES = [
    Case(
        "an engine that does not answer, beside one that does",
        {HEALTHY + "'a'}": "1x10 0x400", HEALTHY + "'b'}": "1x400"},
        13,
        ("SpeechEngineUnhealthy",),
    ),
    Case("an engine that misses one check", {HEALTHY + "'a'}": "1x10 0 1x400"}, 13),
    Case(
        "the only engine does not answer",
        {HEALTHY + "'a'}": "1x10 0x400"},
        22,
        ("SpeechEngineUnhealthy", "SpeechNoEngine"),
    ),
    Case("the only engine is gone", {HEALTHY + "'a'}": "1x10 stale"}, 22, ("SpeechNoEngine",)),
    Case(
        "it has been gone for two hours, and Serve tries to bring it back",
        {HEALTHY + "'a'}": "1x10 stale", STATUS: "6x10 3x400"},
        130,
        ("SpeechNoEngine",),
    ),
    Case(
        "a model that was added never comes, beside one that is there",
        {HEALTHY + "'a'}": "1x400", STATUS: "6x400", ANOTHER_STATUS: "3x400"},
        15,
        ("SpeechNoEngine",),
    ),
    Case(
        "a model that was added takes eight minutes to load",
        {
            HEALTHY + "'a'}": "1x400",
            "ray_speechlm_replica_healthy{" + ANOTHER + ", replica='b'}": "_x18 1x400",
            STATUS: "6x400",
            ANOTHER_STATUS: "_x10 3x8 6x400",
        },
        30,
    ),
    Case(
        "a model is taken out of the settings",
        {HEALTHY + "'a'}": "1x10 stale", STATUS: "6x10 stale"},
        30,
    ),
    Case(
        "a model that nobody has asked for is scaled to zero, and so is its report",
        {HEALTHY + "'a'}": "1x10 stale", BUILD: "1x10 stale", DESIRED: "1x10 0x400"},
        20,
    ),
    Case(
        "it is woken, and takes seven minutes to load",
        {
            HEALTHY + "'a'}": "1x10 stale",
            HEALTHY + "'b'}": "_x37 1x400",
            DESIRED: "1x10 0x20 1x400",
        },
        40,
    ),
    Case(
        "it is the only one that reports, and is woken",
        {
            HEALTHY + "'a'}": "1x10 stale",
            HEALTHY + "'b'}": "_x37 1x400",
            BUILD: "1x10 _x26 1x400",
            DESIRED: "1x10 0x20 1x400",
        },
        37,
    ),
    Case(
        "it is woken, and does not come",
        {HEALTHY + "'a'}": "1x10 stale", DESIRED: "1x10 0x20 1x400"},
        45,
        ("SpeechNoEngine",),
    ),
    Case(
        "an autoscaled engine is gone that should be there",
        {HEALTHY + "'a'}": "1x10 stale", DESIRED: "1x400"},
        22,
        ("SpeechNoEngine",),
    ),
    Case(
        "an engine is gone while another model sleeps",
        {
            HEALTHY + "'a'}": "1x10 stale",
            ANOTHER_DESIRED: "0x400",
        },
        22,
        ("SpeechNoEngine",),
    ),
    Case(
        "an engine is replaced within a minute",
        {HEALTHY + "'a'}": "1x10 stale", HEALTHY + "'b'}": "_x11 1x400"},
        20,
    ),
    Case(
        "Serve cannot deploy",
        {"ray_serve_deployment_status{%d}": "3x5 1x400"},
        15,
        ("SpeechDeploymentUnhealthy",),
    ),
    Case(
        "Serve is updating",
        {"ray_serve_deployment_status{%d}": "3x400"},
        15,
    ),
    Case("nothing reports", {BUILD: None}, 10, ("SpeechNoMetrics",)),
    Case(
        "nothing reports, but in another namespace",
        {"ray_speechlm_build_info{" + ELSEWHERE + "}": "1x400"},
        10,
        ("SpeechNoMetrics",),
    ),
    Case(
        "nothing reports, while a model of another namespace sleeps",
        {
            BUILD: None,
            "ray_serve_autoscaling_desired_replicas{" + ELSEWHERE + "}": "0x400",
        },
        10,
        ("SpeechNoMetrics",),
    ),
    Case(
        "nothing reports, while one of two models sleeps",
        {BUILD: None, STATUS: "6x400", ANOTHER_STATUS: "6x400", ANOTHER_DESIRED: "0x400"},
        10,
        ("SpeechNoMetrics",),
    ),
    Case("nothing runs", {BUILD: None, STATUS: None, HEALTHY: None}, 10, ("SpeechNoMetrics",)),
    Case(
        "six replicas within half an hour where one should be",
        {HEALTHY + f"'{n}'}}": f"{f'_x{5 * n} ' if n else ''}1x4 stale" for n in range(6)},
        29,
        ("SpeechReplicaFlapping",),
    ),
    Case(
        "a redeploy of four replicas",
        {HEALTHY + f"'old{n}'}}": "1x10 stale" for n in range(4)}
        | {HEALTHY + f"'new{n}'}}": "_x10 1x400" for n in range(4)},
        20,
    ),
    Case(
        "scaled from one replica to eight and back",
        {HEALTHY + "'0'}": "1x400"} | {HEALTHY + f"'{n}'}}": "_x5 1x10 stale" for n in range(1, 8)},
        20,
    ),
    Case(
        "the first request without memory",
        {"ray_speechlm_out_of_memory_events_total{%s, replica=R, part='vocoder'}": "0x10 1x400"},
        13,
        ("SpeechOutOfMemory",),
    ),
    Case(
        "the first record that the audit log lacks",
        {"ray_speechlm_audit_records_lost_total{%s, reason='disk'}": "0x10 1x400"},
        13,
        ("SpeechAuditLost",),
    ),
    Case(
        "memory ran out an hour ago",
        {"ray_speechlm_out_of_memory_events_total{%s, replica=R, part='vocoder'}": "0x10 1x400"},
        75,
    ),
    Case(
        "a full KV cache",
        {"ray_speechlm_kv_blocks_used{%s, replica=R}": "990x400"},
        15,
        ("SpeechKvExhausted",),
    ),
    Case(
        "a KV cache that is full for a moment",
        {"ray_speechlm_kv_blocks_used{%s, replica=R}": "500x10 990x3 500x400"},
        15,
    ),
    Case(
        "half of the requests are preempted",
        {"ray_speechlm_preemptions_total{%s, replica=R}": "0+30x400"},
        20,
        ("SpeechPreemptionStorm",),
    ),
    Case(
        "a preemption now and then",
        {"ray_speechlm_preemptions_total{%s, replica=R}": "0+3x400"},
        60,
    ),
    Case(
        "one unguided frame",
        {"ray_speechlm_unguided_frames{%s, replica=R}": "0x10 1x400"},
        12,
        ("SpeechUnguidedFrame",),
    ),
    Case(
        "one unguided frame of a replica that is gone",
        {"ray_speechlm_unguided_frames{%s, replica=R}": "0x10 1 stale"},
        15,
        ("SpeechUnguidedFrame",),
    ),
    Case(
        "one split pair",
        {"ray_speechlm_pair_rows_split{%s, replica=R}": "0x10 1x400"},
        12,
        ("SpeechPairSplit",),
    ),
]
