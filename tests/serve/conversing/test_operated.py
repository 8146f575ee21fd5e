"""What only models that take audio, and those that scale, show of themselves."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import pytest

from tests.collector import PARENT, TRACE, Collector, headers
from tests.serve.conversing.clips import heard, speech
from tests.serve.panels import asking, needing, shows
from tests.serve.prometheus import Prometheus, scraping
from tests.serve.replica_loads import replicas_of
from tests.serve.service_process import Service

pytestmark = pytest.mark.serve

DIALOGUE = "opuslm-dialogue"
DESIRED = 'ray_serve_autoscaling_desired_replicas{deployment="engine-opuslm"}'
PATIENCE_SECONDS = 240
"""For an engine to start: half a minute, and on a busy machine several."""


@pytest.fixture(scope="module")
def prometheus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(service.metrics_address, tmp_path_factory.mktemp("prometheus")) as running:
        yield running


def ask(http: httpx.Client, seconds: float) -> None:
    """Speaks for so long, within somebody's trace, and is answered."""
    body: dict[str, Any] = {
        "model": DIALOGUE,
        "messages": [{"role": "user", "content": [heard(speech(seconds))]}],
        "modalities": ["text", "audio"],
        "audio": {"voice": "default", "format": "wav"},
        "seed": 4,
        "max_completion_tokens": 400,
    }
    answer = http.post("/v1/chat/completions", json=body, headers=headers())
    assert answer.status_code == 200, answer.text


def until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_what_is_heard_is_measured(http: httpx.Client, prometheus: Prometheus) -> None:
    """In each metric that only a model which takes audio has, and in each panel of these."""
    model = f'{{model="{DIALOGUE}", deployment="engine-{DIALOGUE}"}}'

    def value(metric: str) -> float:
        return prometheus.value(f"ray_speechlm_{metric}{model}")

    ask(http, 1)  # each series is there before it grows
    until(lambda: value("encoded_audio_seconds_total") >= 1, 30)
    # Other tests may have been heard before.
    seconds, clips = value("encoded_audio_seconds_total"), value("encode_seconds_count")
    ask(http, 0.5)
    ask(http, 0.25)
    until(lambda: value("encoded_audio_seconds_total") == seconds + 0.75, 30)
    until(lambda: value("encode_seconds_count") == clips + 2, 30)
    assert 0 < value("encode_seconds_exact_total") < 60
    asked = list(asking(*needing("audio input")))
    assert {title for title, _ in asked} == {"Encoding", "Encoded audio"}
    assert [panel for panel in asked if not shows(prometheus, panel[1])] == []


def test_a_request_is_followed_through_all_parts(http: httpx.Client, collector: Collector) -> None:
    """Front end and replica send their spans to the collector that the settings name."""

    def parts() -> dict[str, set[bytes]]:
        """Names, and whose parts they are."""
        found: dict[str, set[bytes]] = {}
        for span in collector.spans:
            if span.trace_id.hex() == TRACE:
                found.setdefault(span.name, set()).add(span.parent_span_id)
        return found

    def all_have_come() -> bool:
        """Other requests of this trace may still be on their way, each behind its parts."""
        requests = {span.span_id for span in collector.spans if span.name.startswith("POST ")}
        parents = set().union(*parts().values())
        return len(parts()) == 6 and parents <= requests | {bytes.fromhex(PARENT)}

    ask(http, 0.5)
    until(all_have_come, 30)
    found = parts()
    assert found.pop("POST /v1/chat/completions") == {bytes.fromhex(PARENT)}
    assert set(found) == {"queue", "encode", "prefill", "vocoder", "audio"}
    assert bytes.fromhex(PARENT) not in set().union(*found.values())
    assert collector.services == {"speechlm-ingress", "speechlm-engine"}


def test_a_busy_model_gets_a_second_replica(
    service: Service, http: httpx.Client, prometheus: Prometheus
) -> None:
    """More is asked than its rows hold, and what its replica says of that reaches Serve."""
    clients, over = 20, Event()

    def keep_asking(seed: int) -> set[int]:
        body = {"model": "opuslm", "input": "Hello there.", "voice": "default", "seed": seed}
        statuses = set()
        while not over.is_set():
            statuses.add(http.post("/v1/audio/speech", json=body).status_code)
        return statuses

    with replicas_of(service, "engine-opuslm") as replicas, ThreadPoolExecutor(clients) as threads:
        assert len(replicas.loads()) == 1
        busy = [threads.submit(keep_asking, seed) for seed in range(clients)]
        try:
            until(lambda: prometheus.value(DESIRED) == 2, 60)
        finally:
            over.set()  # it is not missed, and an engine starts sooner on idle cores
        assert all(200 in client.result() for client in busy)
        until(lambda: len(replicas.loads()) == 2, PATIENCE_SECONDS)
