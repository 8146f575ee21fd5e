"""A running service and its counters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml
from ray import serve

from tests.serve.service_process import ROOT, Service, running_service

CAPACITY = 20


@pytest.fixture(scope="session")
def capacity() -> int:
    """Requests that the service takes at a time."""
    return CAPACITY


@pytest.fixture(scope="session")
def serve_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped configuration with a small capacity."""
    data = yaml.safe_load((ROOT / "serve_config.yaml").read_text())
    data["applications"][0]["args"]["models"][0]["max_concurrent_requests"] = CAPACITY
    path = tmp_path_factory.mktemp("config") / "serve_config.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture(scope="module")
def service(serve_config: Path) -> Iterator[Service]:
    """One service for all tests of a module, which leave it as they found it."""
    with running_service(serve_config) as running:
        yield running
        running.stop(ctrl_c=True)


@pytest.fixture(scope="module")
def stats(service: Service) -> Iterator[Callable[[], dict[str, Any]]]:
    """Reads the counters of the engine replica, as a second driver of its Ray cluster."""
    ray.init(address=service.ray_address, namespace="serve", log_to_driver=False)
    handle = serve.get_deployment_handle("engine-demo", "speechlm")
    yield lambda: handle.stats.remote().result()
    ray.shutdown()
