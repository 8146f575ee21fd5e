"""``serve_config.yaml``: Ray Serve's own schema around our settings, both strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ray.serve.config import ProxyLocation
from ray.serve.schema import ServeApplicationSchema, ServeDeploySchema

from deployments import yaml_file
from deployments.settings import INGRESS, Settings
from deployments.validation import foremost

BUILDER = "deployments.builder:build"


class ConfigError(ValueError):
    """The file cannot be used; the message names the file and the key."""


def load(path: Path) -> ServeDeploySchema:
    """Reads and checks a whole file.

    Raises:
        ConfigError: it is missing, not YAML, or has an unknown key or a bad value.
    """
    try:
        data = yaml_file.read(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except yaml_file.NotYaml as error:
        detail = f": {error.detail}" if error.detail else ""
        raise ConfigError(f"{path}: {error}{detail}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must be a mapping with the key applications")
    try:
        config = ServeDeploySchema.model_validate(data)
        settings = [settings for _, settings in speech_settings(config)]
        unknown = unknown_keys(data, config.model_dump(exclude_unset=True))
        fault = f"unknown keys: {', '.join(unknown)}" if unknown else _fault(config, settings)
    except ValidationError as error:
        first = foremost(error.errors())
        where = ".".join(map(str, first["loc"]))
        fault = f"{where}: {yaml_file.sentence(first)}" if where else yaml_file.sentence(first)
    except RecursionError:
        fault = "a part of it contains itself"
    except (AttributeError, TypeError, ValueError) as error:
        # Serve's validators take it for granted that a mapping is one.
        fault = f"is not a configuration of Serve: {error}"
    if fault is not None:
        raise ConfigError(f"{path}: {' '.join(fault.split())}")
    return config


def _fault(config: ServeDeploySchema, settings: list[Settings]) -> str | None:
    """What Serve would take, and fail with, or wait for without an end."""
    if config.proxy_location is ProxyLocation.Disabled:
        return "proxy_location: must not be Disabled: nothing would listen"
    if not config.applications:
        return "applications: there is none"
    for index, application in enumerate(config.applications):
        where = f"applications.{index}"
        if application.import_path != BUILDER:
            return f"{where}.import_path: must be {BUILDER}, not {application.import_path}"
        if application.route_prefix != "/":
            return f"{where}.route_prefix: must be /, not {application.route_prefix}"
        names = {INGRESS, *(model.deployment for model in settings[index].models)}
        for number, deployment in enumerate(application.deployments):
            if deployment.name not in names:
                return (
                    f"{where}.deployments.{number}.name: {deployment.name!r} is not one of "
                    + ", ".join(sorted(names))
                )
    return None


def speech_settings(
    config: ServeDeploySchema,
) -> list[tuple[ServeApplicationSchema, Settings]]:
    """The applications of a file that are ours, with their settings."""
    return [
        (application, Settings.model_validate(application.args))
        for application in config.applications
        if application.import_path == BUILDER
    ]


def unknown_keys(given: Any, understood: Any, where: str = "") -> list[str]:
    """Dotted names of the keys of ``given`` that Serve's lenient schema has dropped."""
    if isinstance(given, dict) and isinstance(understood, dict):
        lost = [f"{where}{key}" for key in given if key not in understood]
        kept = [
            (f"{where}{key}.", given[key], understood[key]) for key in given.keys() & understood
        ]
    elif isinstance(given, list) and isinstance(understood, list):
        lost = []
        kept = [
            (f"{where}{index}.", a, b)
            for index, (a, b) in enumerate(zip(given, understood, strict=True))
        ]
    else:
        return []
    return lost + [name for prefix, a, b in kept for name in unknown_keys(a, b, prefix)]
