"""A running service and its counters."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file, save_file

from engine_adapter.checkpoint import WEIGHTS_FILE
from engine_adapter.spec import StreamSpec
from engine_adapter.tiny import make_tiny
from tests.serve.replica_stats import reading
from tests.serve.service_process import ROOT, Service, running_service

CAPACITY = 20


@pytest.fixture(scope="session")
def capacity() -> int:
    """Requests that the service takes at a time."""
    return CAPACITY


@pytest.fixture(scope="session")
def endless_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model that never ends audio by itself.

    Where a random model would end depends on the last bit of its logits, and so on the kind of
    processor. This one writes as much as a request asks for, on all of them.
    """
    directory = make_tiny("demo", tmp_path_factory.mktemp("endless"))
    weights = load_file(directory / WEIGHTS_FILE)
    # The last column is a bias (engine_adapter/tiny.py).
    weights["lm_head.weight"][list(StreamSpec.load(directory).audio_end_ids), -1] = -100.0
    save_file(weights, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    return directory


@pytest.fixture(scope="session")
def serve_config(tmp_path_factory: pytest.TempPathFactory, endless_model: Path) -> Path:
    """The shipped configuration with a small capacity and the endless model, named ``demo``; and
    with an audit log."""
    directory = tmp_path_factory.mktemp("config")
    data = yaml.safe_load((ROOT / "serve_config.yaml").read_text())
    arguments = data["applications"][0]["args"]
    arguments["guards"] = {"audit": {"path": str(directory / "audit.jsonl")}}
    [model] = arguments["models"]
    model |= {"id": "demo", "path": str(endless_model), "max_concurrent_requests": CAPACITY}
    model["engine"]["max_model_len"] = 3200
    refusing = {"weight": 1, "max_wait_seconds": 0}  # tests/serve/test_routing.py has a queue
    model["admission"] = dict.fromkeys(("realtime", "standard", "batch"), refusing)
    path = directory / "serve_config.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture(scope="session")
def service(serve_config: Path) -> Iterator[Service]:
    """One service for all tests that need no other, which leave it as they found it."""
    with running_service(serve_config) as running:
        yield running
        running.stop(signal.SIGINT)


@pytest.fixture(scope="module")
def stats(service: Service) -> Iterator[Callable[[], dict[str, Any]]]:
    """Reads the counters of the engine replica."""
    with reading(service, "engine-demo") as read:
        yield read
