"""The files of a model directory: what they are called, and what is read without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_adapter.json_object import read_object
from engine_adapter.spec import SPEC_FILE, StreamSpec
from vocoder_service.configuration import find_configuration

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
WEIGHTS_INDEX_FILE = "model.safetensors.index.json"
TOKENIZER_FILE = "tokenizer/tokenizer.json"


class CheckpointError(ValueError):
    """A model directory is incomplete or unreadable; the message names the file."""


def has_configuration(folder: Path) -> bool:
    """Whether there is a codec or an SSL model."""
    return find_configuration(folder) is not None


def existing(path: Path) -> Path:
    """
    Raises:
        CheckpointError: there is no such file.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """
    Raises:
        CheckpointError: there is no such file, or no JSON object in it.
    """
    try:
        return read_object(existing(path))
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def check_vocabulary(directory: Path, config: Mapping[str, Any], spec: StreamSpec) -> None:
    """
    Args:
        config: content of ``config.json``.

    Raises:
        CheckpointError: it and the spec disagree.
    """
    if config.get("vocab_size") != spec.vocab_size:
        raise CheckpointError(
            f"{directory}: {CONFIG_FILE} has vocab_size {config.get('vocab_size')}, "
            f"{SPEC_FILE} has {spec.vocab_size}"
        )


def find_shards(directory: Path) -> tuple[Path, ...]:
    """The backbone's safetensors files.

    Raises:
        CheckpointError: one is missing, or the index of several is no such thing.
    """
    index = directory / WEIGHTS_INDEX_FILE
    if not index.is_file():
        return (existing(directory / WEIGHTS_FILE),)
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index}: no weight_map")
    if not all(isinstance(name, str) for name in weight_map.values()):
        raise CheckpointError(f"{index}: weight_map must name files")
    return tuple(existing(directory / name) for name in sorted(set(weight_map.values())))
