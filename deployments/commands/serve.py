"""Serves models over HTTP on this machine, as a Ray Serve configuration says."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deployments.commands import CommandError

if TYPE_CHECKING:
    from ray.serve.schema import ServeDeploySchema

    from deployments.models.card import ModelCard

HELP = "serve models over HTTP"

_LOOK_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", nargs="?", type=Path, default=Path("serve_config.yaml"), help="%(default)s"
    )
    parser.add_argument("--host", help="instead of the file's")
    parser.add_argument("--port", type=int, help="instead of the file's")


def run(options: argparse.Namespace) -> int:
    from deployments import supervision

    return supervision.run(partial(_serve, options))


def _serve(options: argparse.Namespace, directory: Path) -> None:
    import httpx

    from deployments import local_service, supervision, watching
    from deployments.config_file import load

    try:
        config = load(options.config)
        _override(config, options.host, options.port)
        warnings = _check_guards(config)
        cards = _find_models(config)
        local_service.require_free(config)
    except (OSError, ValueError, local_service.StartError) as error:
        raise CommandError(str(error)) from error
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    logs = supervision.logs(directory)
    print(f"logs:  {logs}", flush=True)
    try:
        with local_service.running(config, directory) as url:
            supervision.ready(directory)
            keyed = _needs_keys(config)
            print(f"ready: {url}", *(_example(url, card, keyed=keyed) for card in cards), sep="\n")
            sys.stdout.flush()
            try:
                with httpx.Client(base_url=url, timeout=_LOOK_SECONDS) as client:
                    for line in watching.changes(client):
                        print(line, flush=True)
            except supervision.Stop:
                print("stopping: answers that are being sent may end first", flush=True)
                raise
    except local_service.StartError as error:
        kept = f"\nlogs: {logs}" if logs.exists() else ""
        raise CommandError(f"{error}{kept}") from error


def _override(config: ServeDeploySchema, host: str | None, port: int | None) -> None:
    """
    Raises:
        ValueError: there is no such host or port.
    """
    if host is not None:
        config.http_options.host = host
    if port is not None:
        config.http_options.port = port
    host, port = config.http_options.host, config.http_options.port
    if not host:
        raise ValueError("http_options.host: is empty")
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
