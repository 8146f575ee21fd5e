"""The service on this machine, in a Ray cluster of its own."""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import ray
from ray import serve
from ray.serve._private.api import serve_start
from ray.serve._private.client import ServeControllerClient
from ray.serve.schema import (
    ApplicationStatus,
    ApplicationStatusOverview,
    DeploymentStatus,
    ServeDeploySchema,
)

from deployments.config_file import speech_settings
from deployments.draining import drain
from deployments.front_end import proxy

_POLL_SECONDS = 0.5
_SIGNAL_SECONDS = 1.0  # in which Ray's processes end, if they end by themselves
_STOP_SECONDS = 10.0  # for an idle replica to end its engine
_STARTS = 3  # of Ray, which gives its own processes half a minute, however busy the machine is
_TOO_SLOW = "timed out during startup"  # in Ray's message
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # of all addresses, the one to call
# As traces name a class: with its module, or one of Python's own.
_CLASS = re.compile(r"^(?:(?:[a-z_]\w*\.)+[A-Z]\w*|[A-Z]\w*(?:Error|Exception)): ")
_OBJECT_STORE_BYTES = 128 * 2**20  # pieces of audio pass through it, nothing large


class StartError(RuntimeError):
    """The service could not be started; the message says why."""


@contextmanager
def running(config: ServeDeploySchema, directory: Path) -> Iterator[str]:
    """Starts Ray and Serve, waits until the service is ready, and stops both at the end.

    At the end requests may finish, for as long as the settings allow, and new ones are refused. A
    process that this has started may still be ending when it returns.

    Args:
        directory: for Ray's logs and sockets; its path must be short.

    Yields:
        The base URL.

    Raises:
        StartError: an application failed to start.
    """
    host, port = config.http_options.host, config.http_options.port
    _start_ray(directory, max(os.cpu_count() or 1, _cpus(config)))
    try:
        client = serve_start(
            http_options=config.http_options.model_dump(), proxy_location=config.proxy_location
        )
        client.deploy_apps(config, _blocking=False)
        url = _url(host, port)
        _await_ready(url)
        try:
            yield url
        finally:
            if not _ray_ends():
                _stop(client, config)
    finally:
        ray.shutdown()


def require_free(config: ServeDeploySchema) -> None:
    """Looks whether its address can be listened at: Serve's proxy would only fail after the engine
    has loaded.

    Raises:
        StartError: it is taken, or not this machine's.
    """
    host, port = config.http_options.host, config.http_options.port
    family = socket.AF_INET6 if _is_ipv6(host) else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartError(
                f"cannot listen on {_address(host, port)}: {error.strerror}"
            ) from error


def _url(host: str, port: int) -> str:
    """
    Args:
        host: where it listens.
    """
    return f"http://{_address(_HERE.get(host, host), port)}"


def _is_ipv6(host: str) -> bool:
    return ":" in host


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if _is_ipv6(host) else f"{host}:{port}"


def _start_ray(directory: Path, cpus: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray gives way to other programs; here its workers are the service.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Serve kills a proxy that is not ready in three times this; in five seconds one that starts
    # on a busy machine is not, and the next one neither.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "30")
    # When it ends, no load balancer need hear of it first.
    os.environ.setdefault("RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S", "0.1")
    # An engine that hangs ends nothing, however long its replica may finish its requests.
    os.environ.setdefault("RAY_SERVE_FORCE_STOP_UNHEALTHY_REPLICAS", "1")
    # Serve's proxies would answer 500 to some headers.
    os.environ.setdefault(proxy.VARIABLE, proxy.CALLBACK)
    # Every piece of audio is a task of Ray's, whose events it would keep, up to 100,000 of them.
    os.environ.setdefault("RAY_task_events_report_interval_ms", "0")
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for start in range(1, _STARTS + 1):
        try:
            ray.init(
                address="local",  # whatever other cluster there is, or RAY_ADDRESS names
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                log_to_driver=False,
                configure_logging=False,
                _temp_dir=str(directory),
            )
            break
        except Exception as error:  # Ray raises nothing more specific
            ray.shutdown()
            if _TOO_SLOW not in str(error):
                raise StartError(f"Ray did not start: {error}") from error
            if start == _STARTS:
                raise StartError(
                    f"Ray did not start within its 30 seconds, {_STARTS} times: the machine is "
                    "too busy, or its logs say what else it is"
                ) from error
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)  # Ray's own print a stack trace and abort


def _cpus(config: ServeDeploySchema) -> int:
    """CPUs the applications ask for; on a smaller machine they share what there is."""
    return math.ceil(
        sum(
            model.most_replicas * model.bundle["CPU"]
            for _, settings in speech_settings(config)
            for model in settings.models
        )
    )


def _await_ready(url: str) -> None:
    with httpx.Client(timeout=5) as client:
        while True:
            for application in serve.status().applications.values():
                if application.status is ApplicationStatus.DEPLOY_FAILED:
                    raise StartError(_reason(application))
            try:
                if client.get(f"{url}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass  # Serve's proxy does not listen yet
            time.sleep(_POLL_SECONDS)


def _reason(application: ApplicationStatusOverview) -> str:
    """The exception of the deployment that failed, or whatever else Serve has to say."""
    for deployment in application.deployments.values():
        if deployment.status is DeploymentStatus.DEPLOY_FAILED:
            return _last_line(deployment.message)
    return _last_line(application.message)


def _last_line(message: str) -> str:
    """Of a trace, what the exception says, without its class."""
    line = message.strip().rpartition("\n")[2]
    return _CLASS.sub("", line) or line


def _ray_ends() -> bool:
    """Whether Ray's own processes end already, as they do when all of a group or of a container
    got the signal; then there is nobody to ask, and Ray would try for a minute."""
    node = ray._private.worker._global_node
    deadline = time.monotonic() + _SIGNAL_SECONDS
    while time.monotonic() < deadline:
        if node.dead_processes():
            node.kill_all_processes(check_alive=False, allow_graceful=False)
            return True
        time.sleep(_SIGNAL_SECONDS / 10)
    return False


def _stop(client: ServeControllerClient, config: ServeDeploySchema) -> None:
    ours = speech_settings(config)
    longest = max(settings.service.drain_seconds for _, settings in ours)
    drain(client, [application.name for application, _ in ours], longest)
    client.delete_apps([application.name for application, _ in ours], False)
    deadline = time.monotonic() + _STOP_SECONDS
    while serve.status().applications and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
