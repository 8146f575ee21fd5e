"""A scripted load on a real service, as a real Prometheus sees it.

The service has no GPU and its model takes no audio; metrics that need either say so in their
definitions. Those of audio are in tests/serve/conversing/test_operated.py.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.kinds import RAY_PREFIX, Metric
from tests.serve.panels import DASHBOARDS, OF_NODES, asking, needing, panels, shows
from tests.serve.prometheus import NAMESPACE, Prometheus, scraping
from tests.serve.ray_nodes import cluster
from tests.serve.service_process import Service

pytestmark = pytest.mark.serve

SECONDS, FRAMES = 2, 100
"""Of each answer of the endless model."""
PLAIN, GUIDED, SPOKEN, REFUSED, LEAVING_GUIDED = 3, 2, 1, 2, 4
"""Requests of each kind: answered, over a WebSocket, without room, broken off by the client."""
ANSWERS = PLAIN + GUIDED + SPOKEN
SPEECH = {"endpoint": "/v1/audio/speech", "model": "demo"}
PATIENCE_SECONDS = 90
ELSEWHERE = tuple(metric for metric in DEFINITIONS if metric.needs in ("gpu", "audio input"))
HERE = tuple(metric for metric in DEFINITIONS if metric not in ELSEWHERE)

Counters = dict[frozenset[tuple[str, str]], float]


@dataclass(frozen=True)
class Load:
    """What a load has left behind.

    Attributes:
        seconds: it took.
        left: streams that were broken off.
        most: the most requests and rows that were seen at a time.
    """

    before: Counters
    after: Counters
    seconds: float
    left: int
    most: tuple[float, float]

    def more(self, name: str, **labels: str) -> float:
        """How much a counter, or the count of a histogram, has grown, over all other labels."""
        wanted = {*labels.items(), ("__name__", f"{RAY_PREFIX}speechlm_{name}")}
        return sum(
            value - self.before.get(key, 0.0) for key, value in self.after.items() if wanted <= key
        )


@pytest.fixture(scope="module")
def prometheus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(service.metrics_address, tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="module")
def load(service: Service, prometheus: Prometheus, capacity: int) -> Load:
    answer(service, plain=1, guided=1)  # each series is there before it grows
    before = settled(prometheus)
    began = time.monotonic()
    answer(service, PLAIN, GUIDED)
    most = asyncio.run(leave(service, prometheus, capacity))
    after = settled(prometheus)
    return Load(before, after, time.monotonic() - began, capacity, most)


def counters(prometheus: Prometheus) -> Counters:
    expression = f'{{namespace="{NAMESPACE}",__name__=~"{RAY_PREFIX}speechlm_.*_(total|count)"}}'
    return {frozenset(labels.items()): value for labels, value in prometheus.query(expression)}


def settled(prometheus: Prometheus) -> Counters:
    """All counters, once they have not changed for longer than any of them is late."""
    late_seconds = 15  # polled, exported and scraped every 2, 2 and 1 seconds if there is time
    return steady(lambda: counters(prometheus), late_seconds)


def steady(read: Callable[[], Counters], seconds: float) -> Counters:
    deadline = time.monotonic() + PATIENCE_SECONDS
    seen, since = read(), time.monotonic()
    while time.monotonic() - since < seconds:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        if (now := read()) != seen:
            seen, since = now, time.monotonic()
    return seen


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "demo",
        "voice": "rms",
        "input": "Hello there.",
        "max_duration_seconds": SECONDS,
        "response_format": "pcm",
        "cfg_scale": 1,
        **changes,
    }


def answer(service: Service, plain: int, guided: int) -> None:
    """Requests one after the other, one over a WebSocket, and one for a model that is not there."""
    with httpx.Client(base_url=service.url, timeout=120) as http:
        for scale in [1] * plain + [2] * guided:
            spoken = http.post("/v1/audio/speech", json=body(cfg_scale=scale))
            assert spoken.status_code == 200
        unknown = http.post("/v1/audio/speech", json=body(model="made-up"))
        assert unknown.status_code == 404
    with connect(f"{service.url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        options = body()
        del options["input"]
        socket.send(json.dumps({"type": "start", **options}))
        socket.send(json.dumps({"type": "text", "text": "Hello there."}))
        socket.send(json.dumps({"type": "end"}))
        assert any('"done"' in message for message in socket if isinstance(message, str))


async def leave(service: Service, prometheus: Prometheus, capacity: int) -> tuple[float, float]:
    """As many long streams as there is room for, and some more, until they are seen; then none.

    Returns:
        Requests and rows that were seen.
    """
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=service.url, timeout=120, limits=limits) as http:

        async def begin(number: int) -> tuple[httpx.Response, AsyncIterator[bytes]]:
            scale = 2 if number < LEAVING_GUIDED else 1
            long = body(cfg_scale=scale, max_duration_seconds=60, stream=True)
            request = http.build_request("POST", "/v1/audio/speech", json=long)
            response = await http.send(request, stream=True)
            assert response.status_code == 200
            pieces = response.aiter_raw()  # held: without it the connection would close already
            await anext(pieces)
            return response, pieces

        streams = await asyncio.gather(*(begin(number) for number in range(capacity)))
        for _ in range(REFUSED):
            refused = await http.post("/v1/audio/speech", json=body())
            assert refused.status_code == 429
        seen = await asyncio.to_thread(gauges_at, prometheus, capacity)
        for response, _ in streams:
            await response.aclose()
    return seen


def gauges_at(prometheus: Prometheus, requests: int) -> tuple[float, float]:
    """Requests and rows, once both have been as many as there are requests.

    A replica asks its engine for the rows after it has said how many requests it has, so that
    Prometheus may see these alone.
    """
    names = [
        f"max_over_time(ray_speechlm_{name}[1m])" for name in ("replica_requests", "rows_running")
    ]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while min(now := (prometheus.value(names[0]), prometheus.value(names[1]))) < requests:
        assert time.monotonic() < deadline, now
        time.sleep(0.2)
    return now


@pytest.mark.parametrize("metric", HERE, ids=lambda metric: metric.name)
def test_every_metric_is_there(load: Load, prometheus: Prometheus, metric: Metric) -> None:
    for name in metric.exported:
        # A gauge that is set late is away for a moment.
        series = prometheus.query(f'last_over_time({name}{{namespace="{NAMESPACE}"}}[1m])')
        assert series
        for labels, _ in series:
            assert {*metric.labels, "application", "deployment", "replica"} <= set(labels)


def test_requests_are_counted_by_what_became_of_them(load: Load) -> None:
    ended = {"status": "200", "finish_reason": "length", **SPEECH}
    assert load.more("requests_total", **ended, guided="false") == PLAIN
    assert load.more("requests_total", **ended, guided="true") == GUIDED
    assert load.more("requests_total", status="101", finish_reason="length") == SPOKEN
    assert load.more("requests_total", status="404", model="none") == 1
    assert load.more("requests_total", status="429", finish_reason="none", **SPEECH) == REFUSED
    assert load.more("refused_requests_total", reason="rate_limit_exceeded") == REFUSED
    cancelled = {"finish_reason": "cancelled", **SPEECH}
    assert load.more("requests_total", **cancelled) == load.left
    assert load.more("requests_total", **cancelled, guided="true") == LEAVING_GUIDED
    assert load.more("cancelled_requests_total", phase="audio", **SPEECH) == load.left
    assert load.more("request_seconds_count") == ANSWERS + load.left + REFUSED + 1


def test_times_are_those_of_the_load(load: Load) -> None:
    begun = ANSWERS + load.left
    for name in ("queue_seconds", "time_to_first_audio_seconds", "time_to_first_token_seconds"):
        assert load.more(f"{name}_count") == begun
        assert 0 < load.more(f"{name}_exact_total") < begun * load.seconds
    assert load.more("time_to_first_audio_seconds_exact_total") > load.more(
        "time_to_first_token_seconds_exact_total"
    )
    assert load.more("time_per_output_frame_seconds_count") == ANSWERS
    per_frame = load.more("time_per_output_frame_seconds_exact_total") / ANSWERS
    assert 0 < per_frame * FRAMES < load.seconds
    assert load.more("real_time_factor_count") == load.more("underrun_seconds_count") == ANSWERS
    factors = load.more("real_time_factor_exact_total")
    assert per_frame * FRAMES / SECONDS < factors / ANSWERS < load.seconds / SECONDS


def test_audio_is_counted_to_the_sample(load: Load) -> None:
    lengths = load.more("audio_length_seconds_exact_total")
    assert load.more("audio_length_seconds_count") == ANSWERS
    assert 0.97 * ANSWERS * SECONDS < lengths <= ANSWERS * SECONDS
    assert load.more("audio_seconds_total") > lengths  # of streams that were broken off, too
    assert load.more("audio_gap_seconds_count") > ANSWERS


def test_the_engine_s_figures_arrive_whole(load: Load, prometheus: Prometheus) -> None:
    assert load.more("engine_requests_total", outcome="finished") == ANSWERS
    assert load.more("engine_requests_total", outcome="aborted") == load.left
    assert load.more("engine_requests_total", outcome="failed") == 0
    assert load.more("pairs_total", event="admitted") == GUIDED + LEAVING_GUIDED
    assert load.more("pairs_total", event="finished") == GUIDED
    assert load.more("pairs_total", event="aborted") == LEAVING_GUIDED
    assert load.more("frames_total") > ANSWERS * FRAMES
    steps = load.more("engine_step_seconds_count")
    assert steps > ANSWERS * FRAMES  # they were answered one after the other
    assert load.more("engine_tokens_total") > steps
    assert 0 < load.more("engine_step_seconds_exact_total") < load.seconds
    requests, rows = load.most
    assert requests == load.left
    assert load.left < rows <= load.left + LEAVING_GUIDED
    for name in ("rows_running", "rows_waiting", "kv_blocks_used", "replica_requests"):
        assert prometheus.value(f"ray_speechlm_{name}") == 0
    assert prometheus.value("ray_speechlm_rows_capacity") == 64
    assert prometheus.value("ray_speechlm_replica_capacity") == load.left
    assert prometheus.value("ray_speechlm_replica_healthy") == 1


def test_what_must_be_0_is_0(load: Load, prometheus: Prometheus) -> None:
    for name in ("unguided_frames", "pair_rows_split", "preemptions_total"):
        assert prometheus.query(f"ray_speechlm_{name}")[0][1] == 0
    for name in ("out_of_memory_events_total", "audit_records_lost_total"):
        assert prometheus.value(f"sum(ray_speechlm_{name})") == 0


def test_the_vocoder_s_figures_arrive_whole(load: Load) -> None:
    batches, windows = (load.more(f"vocoder_{what}_total") for what in ("batches", "windows"))
    assert 0 < batches <= windows
    assert 0 < load.more("vocoder_decode_seconds_total") < load.seconds
    assert load.more("vocoder_wait_seconds_count") > ANSWERS
    assert load.more("vocoder_wait_seconds_exact_total") > 0


def test_serve_and_vllm_are_beside_them(load: Load, prometheus: Prometheus) -> None:
    assert prometheus.query("ray_serve_num_http_requests_total")
    generated = "ray_vllm_generation_tokens_total"
    assert sum(value for _, value in prometheus.query(generated)) > ANSWERS * FRAMES


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_every_panel_has_data(load: Load, prometheus: Prometheus, dashboard: str) -> None:
    elsewhere = {*asking(*needing("gpu"), *needing("audio input"), *OF_NODES)}
    here = [panel for panel in panels(dashboard) if panel not in elsewhere]
    assert here
    assert [panel for panel in here if not shows(prometheus, panel[1])] == []


def test_panels_of_machines_have_data(tmp_path: Path) -> None:
    """Of a node with Ray's dashboard, as KubeRay starts the head."""
    chart = pytest.importorskip("tests.unit.k8s.chart")
    head = chart.ray_service(chart.profile("cpu"))["rayClusterConfig"]["headGroupSpec"]
    asked = list(asking(*OF_NODES))
    assert {title for title, _ in asked} == {"CPU", "Memory"}
    with cluster() as ray:
        ray.start(head, head=True)
        with scraping(ray.metrics[0], tmp_path) as prometheus:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not all(shows(prometheus, expression) for _, expression in asked):
                assert time.monotonic() < deadline, ray.said()
                time.sleep(0.5)


def test_every_rule_can_be_evaluated_and_nothing_of_the_worst_fires(
    load: Load, prometheus: Prometheus
) -> None:
    rules = prometheus.rules()
    assert rules
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert not {name for name in firing if "Unguided" in name or "Memory" in name}
