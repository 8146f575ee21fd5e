"""Every alert fires when it should and is silent when it need not, as promtool evaluates it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.k8s.chart import CHART, command

RULES = CHART / "rules/speechlm.yaml"
DEPLOYMENT = 'namespace="speech", application="speechlm", deployment="engine-tts"'
MODEL = f'{DEPLOYMENT}, model="tts"'
# Of the service as it should be, per minute. What a case gives replaces the series of its metric.
GOOD = {
    "ray_speechlm_build_info{%s, replica=R}": "1x400",
    "ray_speechlm_replica_healthy{%s, replica=R}": "1x400",
    "ray_speechlm_rows_capacity{%s, replica=R}": "64x400",
    "ray_speechlm_rows_waiting{%s, replica=R}": "0x400",
    "ray_speechlm_admission_waiting{%s, replica=R, priority='batch'}": "0x400",
    "ray_speechlm_kv_blocks_used{%s, replica=R}": "500x400",
    "ray_speechlm_kv_blocks_capacity{%s, replica=R}": "1000x400",
    "ray_speechlm_unguided_frames{%s, replica=R}": "0x400",
    "ray_speechlm_pair_rows_split{%s, replica=R}": "0x400",
    "ray_speechlm_preemptions_total{%s, replica=R}": "0x400",
    "ray_speechlm_engine_requests_total{%s, replica=R, outcome='finished'}": "0+60x400",
    "ray_speechlm_out_of_memory_events_total{%s, replica=R, part='vocoder'}": "0x400",
    "ray_speechlm_audit_records_lost_total{%s, reason='disk'}": "0x400",
    "ray_speechlm_requests_total{%s, status='200', finish_reason='stop'}": "0+60x400",
    "ray_speechlm_time_to_first_audio_seconds_bucket{%s, priority=P, le='1.0'}": "0+60x400",
    "ray_speechlm_time_to_first_audio_seconds_count{%s, priority=P}": "0+60x400",
    "ray_speechlm_real_time_factor_bucket{%s, replica=R, le='1.0'}": "0+60x400",
    "ray_speechlm_real_time_factor_count{%s, replica=R}": "0+60x400",
    "ray_speechlm_queue_seconds_bucket{%s, priority=P, le='0.1'}": "0+60x400",
    "ray_speechlm_queue_seconds_bucket{%s, priority=P, le='10.0'}": "0+60x400",
    "ray_speechlm_queue_seconds_bucket{%s, priority=P, le='+Inf'}": "0+60x400",
    "ray_serve_deployment_status{%d}": "6x400",
}


@dataclass(frozen=True)
class Case:
    """A service that differs from a good one, and the alerts that fire after a time.

    Attributes:
        series: what is different; None: the metric is not there.
        after: minutes.
    """

    name: str
    series: Mapping[str, str | None]
    after: int
    fires: tuple[str, ...] = ()


TTFA = "ray_speechlm_time_to_first_audio_seconds"
IN_TIME = TTFA + "_bucket{%s, priority=P, le="
RTF = "ray_speechlm_real_time_factor"
REQUESTS = "ray_speechlm_requests_total{%s, status="
QUEUE = "ray_speechlm_queue_seconds_bucket{%s, priority=P, le="
HEALTHY = "ray_speechlm_replica_healthy{%s, replica="
BUILD = "ray_speechlm_build_info{%s, replica=R}"
DESIRED = "ray_serve_autoscaling_desired_replicas{%d}"
STATUS = "ray_serve_deployment_status{%d}"
# Another model of this release, and one of a release in another namespace.
ANOTHER = "namespace='speech', application='speechlm', deployment='engine-other'"
ELSEWHERE = "namespace='elsewhere', application='speechlm', deployment='engine-tts'"
ANOTHER_DESIRED = "ray_serve_autoscaling_desired_replicas{" + ANOTHER + "}"
ANOTHER_STATUS = "ray_serve_deployment_status{" + ANOTHER + "}"

CASES = [
    Case("a good hour", {}, 60),
    # Objectives. 1 % of requests may miss them.
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
    # Requests.
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
    # Engines.
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
        "another namespace has errors, which its own rules tell",
        {"ray_speechlm_requests_total{" + ELSEWHERE + ", status='500'}": "0+60x400"},
        20,
    ),
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


def _metric(series: str) -> str:
    return series.partition("{")[0]


def _written(series: str) -> str:
    """A series as promtool reads it."""
    series = series.replace("%s", MODEL).replace("%d", DEPLOYMENT)
    return series.replace("=R", "='one'").replace("=P", "='standard'")


def _promtool_test(case: Case) -> dict[str, Any]:
    replaced = {_metric(series) for series in case.series}
    good = {series: values for series, values in GOOD.items() if _metric(series) not in replaced}
    everything = good | {s: values for s, values in case.series.items() if values is not None}
    return {
        "interval": "1m",
        "input_series": [
            {"series": _written(series), "values": values} for series, values in everything.items()
        ],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{case.after}m",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in case.fires
                ],
            }
        ],
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exactly_these_alerts_fire(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "rule_files": [str(RULES)],
                "evaluation_interval": "1m",
                "tests": [_promtool_test(case)],
            }
        )
    )
    done = subprocess.run(
        [command("promtool"), "test", "rules", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(
        [command("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_and_some_case_is_silent() -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert alerts == {alert for case in CASES for alert in case.fires}
