"""``serve_config.yaml``: Ray Serve's own schema around our settings, both strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from ray.serve.schema import ServeApplicationSchema, ServeDeploySchema

from deployments.settings import Settings
from deployments.validation import sentence

BUILDER = "deployments.builder:build"


class ConfigError(ValueError):
    """The file cannot be used; the message names the file and the key."""


def load(path: Path) -> ServeDeploySchema:
    """Reads and checks a whole file.

    Raises:
        ConfigError: it is missing, not YAML, or has an unknown key or a bad value.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    try:
        config = ServeDeploySchema.model_validate(data)
        speech_settings(config)
    except ValidationError as error:
        first = error.errors()[0]
        where = [str(path), ".".join(map(str, first["loc"]))]
        raise ConfigError(": ".join([*filter(None, where), sentence(first)])) from error
    if unknown := unknown_keys(data, config.model_dump(exclude_unset=True)):
        raise ConfigError(f"{path}: unknown keys: {', '.join(unknown)}")
    return config


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
