"""One service of three models, converted from official files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from openai import OpenAI

from deployments.cli import main
from tests.collector import Collector, collecting
from tests.official.bagpiper import write_bagpiper_tts
from tests.official.listening import write_listening
from tests.official.opuslm import write_opuslm
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import official_model
from tests.reference.generate import Reference
from tests.serve.conversing.expected import Official
from tests.serve.service_process import ROOT, Service, running_service

_LENGTH = 2048
_SCALING: Any = {"autoscaling": {"max_replicas": 2, "up_seconds": 1}}


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conversing")


@pytest.fixture(scope="package")
def official(folder: Path) -> dict[str, Official]:
    """By family, as its publisher has it."""
    listening = write_listening(folder)
    models = {}
    for write in (write_bagpiper_tts, write_opuslm, write_opuslm_dialogue):
        at = folder / write.__name__
        at.mkdir()
        checkpoint = write(at, readable=True)
        reference = Reference(official_model(checkpoint), max_model_len=_LENGTH)
        hears = None if write is write_bagpiper_tts else listening
        models[checkpoint.family] = Official(checkpoint, reference, hears)
    return models


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    with collecting() as listening:
        yield listening


@pytest.fixture(scope="package")
def service(folder: Path, official: dict[str, Official], collector: Collector) -> Iterator[Service]:
    """The models under the names of their families; OpusLM may have a second replica."""
    paths = {}
    for family, model in official.items():
        paths[family] = folder / "served" / family
        arguments = model.checkpoint.arguments
        if (hears := model.listening) is not None:
            arguments += ["--codec", str(hears.codec), "--ssl", str(hears.ssl)]
        assert main([*arguments, "--out", str(paths[family])]) == 0
    data = yaml.safe_load((ROOT / "serve_config.yaml").read_text())
    engine = {"dtype": "float32", "max_rows": 8, "max_model_len": _LENGTH, "kv_blocks": 100}
    data["applications"][0]["args"] = {
        "models": [
            {
                "id": name,
                "path": str(path),
                "max_concurrent_requests": 8,
                "engine": engine,
                **(_SCALING if name == "opuslm" else {}),
            }
            for name, path in paths.items()
        ],
        "service": {"store": str(folder / "store.sqlite3"), "ingress_replicas": 2},
        "tracing": {"endpoint": collector.endpoint},
    }
    config = folder / "serve_config.yaml"
    config.write_text(yaml.safe_dump(data))
    with running_service(config) as running:
        yield running
        running.stop()


@pytest.fixture
def client(service: Service) -> OpenAI:
    return OpenAI(base_url=f"{service.url}/v1", api_key="none", timeout=120, max_retries=0)


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return httpx.Client(base_url=service.url, timeout=120)
