"""Where the service listens, before anything is started."""

import socket
from collections.abc import Iterator

import pytest
from ray.serve.schema import HTTPOptionsSchema, ServeDeploySchema

from deployments import local_service
from deployments.local_service import StartError


@pytest.fixture(params=["127.0.0.1", "::1"])
def taken(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """An address with something that listens."""
    host = request.param
    family = socket.AF_INET6 if host == "::1" else socket.AF_INET
    try:
        listening = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listening:
        yield host, listening.getsockname()[1]


def listening(host: str, port: int) -> ServeDeploySchema:
    options = HTTPOptionsSchema(host=host, port=port)
    return ServeDeploySchema(applications=[], http_options=options)


def test_a_port_that_is_taken_is_named_as_in_an_address(taken: tuple[str, int]) -> None:
    host, port = taken
    named = f"[{host}]:{port}" if host == "::1" else f"{host}:{port}"
    with pytest.raises(StartError) as caught:
        local_service.require_free(listening(host, port))
    assert str(caught.value) == f"cannot listen on {named}: Address already in use"


def test_a_port_that_is_free_may_be_one_of_either_kind() -> None:
    for host in ("127.0.0.1", "::1", "0.0.0.0", "::"):
        with socket.create_server(("127.0.0.1", 0)) as used:
            free = used.getsockname()[1]
        local_service.require_free(listening(host, free))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("example.org", "http://example.org:80"),
    ],
)
def test_the_address_to_call(host: str, url: str) -> None:
    assert local_service._url(host, 80) == url


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (
            "Traceback:\n  x\nengine_adapter.spec.SpecError: models.0.path: m: cut\n",
            "models.0.path: m: cut",
        ),
        ("ValueError: models.0.path: m: cut", "models.0.path: m: cut"),
        ("models.0.path: m: cut", "models.0.path: m: cut"),
        ("serve_config.yaml: is not YAML", "serve_config.yaml: is not YAML"),
        (
            "The deployment failed to start 3 times in a row.",
            "The deployment failed to start 3 times in a row.",
        ),
    ],
)
def test_of_a_trace_the_reason_alone_is_told(trace: str, said: str) -> None:
    assert local_service._last_line(trace) == said
