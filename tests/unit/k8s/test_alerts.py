"""Every alert fires when it should and is silent when it need not, as promtool evaluates it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.k8s.alert_cases import engines, objectives, requests
from tests.unit.k8s.alert_cases.case import Case
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

CASES = [
    Case("a good hour", {}, 60),
    *objectives.CASES,
    *requests.CASES,
    *engines.CASES,
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
