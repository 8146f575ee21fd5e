"""A real Prometheus that scrapes a running service."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.serve.service_process import ROOT, free_port

NAMESPACE = "speech"  # of the rules, as they lie in the chart
RULES = ROOT / "k8s" / "speechlm" / "rules" / "speechlm.yaml"
_START_SECONDS = 60


@dataclass(frozen=True)
class Prometheus:
    """One that is running."""

    http: httpx.Client

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The series of an instant query, with their values now."""
        data = self._get("query", query=expression)
        assert data["resultType"] == "vector", data
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def value(self, expression: str) -> float:
        """Of the one series of an expression; 0 if there is none."""
        series = self.query(expression)
        assert len(series) <= 1, series
        return series[0][1] if series else 0.0

    def rules(self) -> list[dict[str, Any]]:
        """All that are evaluated, and how."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, **parameters: str) -> dict[str, Any]:
        answer = self.http.get(f"/api/v1/{what}", params=parameters)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


@contextmanager
def scraping(target: str, directory: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes a target every second, and evaluates our rules as often.

    Args:
        target: ``host:port``.
        directory: for its files.
    """
    if shutil.which("prometheus") is None:
        assert os.environ.get("CI") != "true", "run requirements/debian"
        pytest.skip("needs Debian's prometheus")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": "speechlm",
                "static_configs": [{"targets": [target], "labels": {"namespace": NAMESPACE}}],
            }
        ],
    }
    (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory / 'prometheus.yaml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=30) as http:
            _await_ready(http, process, directory / "log")
            yield Prometheus(http)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _await_ready(http: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            if http.get("/-/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.1)
