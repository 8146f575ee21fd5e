"""Serves models over HTTP on this machine, as a Ray Serve configuration says."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from deployments.commands import CommandError

if TYPE_CHECKING:
    from ray.serve.schema import ServeDeploySchema

    from deployments.models.card import ModelCard

HELP = "serve models over HTTP"

_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 5.0


class _Stop(BaseException):
    """SIGINT or SIGTERM came."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", nargs="?", type=Path, default=Path("serve_config.yaml"), help="%(default)s"
    )
    parser.add_argument("--host", help="instead of the file's")
    parser.add_argument("--port", type=int, help="instead of the file's")


def run(options: argparse.Namespace) -> int:
    from deployments import processes

    processes.adopt_orphans()
    _on_signals(_stop)
    try:
        _serve(options)
    except _Stop:
        print("stopped", flush=True)
    finally:
        processes.end_descendants(_PATIENCE_SECONDS)
    return 0


def _serve(options: argparse.Namespace) -> None:
    import httpx

    from deployments import local_service, processes, watching
    from deployments.config_file import load

    try:
        config = load(options.config)
        config.http_options.host = options.host or config.http_options.host
        config.http_options.port = options.port or config.http_options.port
        _check_port(config.http_options.port)
        warnings = _check_guards(config)
        cards = _find_models(config)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    print(*warnings, sep="\n", end="\n" if warnings else "", file=sys.stderr, flush=True)
    directory = Path(tempfile.mkdtemp(prefix="speechlm-"))
    _on_signals(partial(_stop, directory=directory))
    try:
        with local_service.running(config, directory) as url:
            keyed = _needs_keys(config)
            print(f"ready: {url}", *(_example(url, card, keyed=keyed) for card in cards), sep="\n")
            sys.stdout.flush()
            try:
                reap = partial(processes.reap_adopted, processes.children())
                with httpx.Client(base_url=url, timeout=_LOOK_SECONDS) as client:
                    for line in watching.changes(client, each_time=reap):
                        print(line, flush=True)
            except _Stop:
                print("stopping: answers that are being sent may end first", flush=True)
                raise
    except local_service.StartError as error:
        logs = directory / "session_latest" / "logs"
        if logs.exists():
            raise CommandError(f"{error}\nlogs: {logs}") from error
        shutil.rmtree(directory)
        raise CommandError(str(error)) from error
    except _Stop:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _check_port(port: int) -> None:
    if not 1 <= port <= 65_535:
        raise ValueError(f"http_options.port: must be 1 to 65535, not {port}")


def _check_guards(config: ServeDeploySchema) -> list[str]:
    """Checks who could come in, and the guards' files, and makes their paths absolute.

    Returns:
        What whoever starts the service should know.

    Raises:
        ExposedError: others could come in, and nobody has said that they may.
        KeysFileError: a keys file cannot be used.
        ValueError: the keys of the environment cannot be, or a file cannot be written.
    """
    from deployments.config_file import speech_settings
    from deployments.guards import exposure, files
    from deployments.guards.key_source import KeySource

    warnings = []
    for application, settings in speech_settings(config):
        guards = settings.guards.with_absolute_paths()
        application.args["guards"] = guards.model_dump()
        KeySource(guards, os.environ)
        files.check(guards, settings.service)
        warnings.append(exposure.warning(config.http_options.host, guards))
        warnings.append(settings.service.drain_warning)
    return [warning for warning in warnings if warning is not None]


def _find_models(config: ServeDeploySchema) -> list[ModelCard]:
    """Makes the models that are made on first use, and all paths absolute.

    Raises:
        ValueError: a model is not there or not complete, there is no such family, a setting does
            not fit it, or it has no such voice; the message names the setting.
    """
    from deployments.config_file import speech_settings
    from deployments.models.card import ModelCard
    from deployments.models.directory import find

    cards = []
    for application, settings in speech_settings(config):
        of_file = application.args["models"]
        for index, (model, arguments) in enumerate(zip(settings.models, of_file, strict=True)):
            directory, spec = find(model, index)
            cards.append(ModelCard.of(model, spec, index=index))
            arguments["path"] = str(directory)
    return cards


def _needs_keys(config: ServeDeploySchema) -> bool:
    from deployments.config_file import speech_settings
    from deployments.guards.key_source import configured

    return any(configured(settings.guards) for _, settings in speech_settings(config))


def _example(url: str, card: ModelCard, *, keyed: bool) -> str:
    body = {"model": card.id, "voice": card.voices[0], "input": "Hello.", "response_format": "wav"}
    data = shlex.quote(json.dumps(body))
    headers = "-H 'content-type: application/json'"
    if keyed:
        headers += " -H 'authorization: Bearer YOUR-KEY'"
    return f"try:   curl --fail-with-body {url}/v1/audio/speech {headers} -d {data} -o hello.wav"


def _on_signals(handler: Callable[[int, FrameType | None], NoReturn]) -> None:
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGTERM, handler)


def _stop(_: int, __: FrameType | None, directory: Path | None = None) -> NoReturn:
    _on_signals(partial(_force, directory=directory))
    raise _Stop


def _force(_: int, __: FrameType | None, directory: Path | None = None) -> NoReturn:
    """Ends at once.

    Args:
        directory: to be removed.
    """
    from deployments import processes

    processes.kill_descendants()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)
