"""Reads a model directory (docs/generation.md, "Model directory")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine_adapter.encoder_files import audio_encoder_fault
from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.spec import SPEC_FILE, SpecError, StreamSpec
from vocoder_service.configuration import find_configuration

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
WEIGHTS_INDEX_FILE = "model.safetensors.index.json"
TOKENIZER_FILE = "tokenizer/tokenizer.json"
STREAM_EMBEDDING = "stream_embedding.weight"


class CheckpointError(ValueError):
    """A model directory is incomplete or unreadable; the message names the file."""


@dataclass(frozen=True)
class ModelDirectory:
    """A model directory whose files were found to exist when it was opened.

    Attributes:
        path: the directory.
        config: content of ``config.json``.
        spec: content of ``speech.json``.
        shards: the backbone's safetensors files, each tensor in exactly one of them.
    """

    path: Path
    config: dict[str, Any]
    spec: StreamSpec
    shards: tuple[Path, ...]

    @classmethod
    def open(cls, path: str | Path) -> ModelDirectory:
        """Reads the configuration and finds the weights; loads no tensor.

        Raises:
            CheckpointError: a file is missing or malformed, or the configuration and
                the spec disagree on the vocabulary.
        """
        directory = Path(path)
        if not directory.is_dir():
            raise CheckpointError(f"{directory}: no such model directory")
        config = _read_json(directory / CONFIG_FILE)
        try:
            spec = StreamSpec.load(directory)
        except SpecError as error:
            raise CheckpointError(str(error)) from error
        if config.get("vocab_size") != spec.vocab_size:
            raise CheckpointError(
                f"{directory}: {CONFIG_FILE} has vocab_size {config.get('vocab_size')}, "
                f"{SPEC_FILE} has {spec.vocab_size}"
            )
        return cls(directory, config, spec, _find_shards(directory))

    @property
    def tokenizer_file(self) -> Path:
        """``tokenizer.json``.

        Raises:
            CheckpointError: it is missing.
        """
        return _existing(self.path / TOKENIZER_FILE)

    @property
    def codec(self) -> Path:
        """The codec's own directory.

        Raises:
            CheckpointError: it has no configuration.
        """
        folder = self.path / CODEC_FOLDER
        if not has_configuration(folder):
            raise CheckpointError(f"{folder / CONFIG_FILE}: no such file")
        return folder

    @property
    def ssl(self) -> Path | None:
        """The directory of the model that makes the SSL stream's units; None for families
        whose first stream is a codec's.

        Raises:
            CheckpointError: it has no configuration.
        """
        if self.spec.codec_first_stream == 0:
            return None
        folder = self.path / SSL_FOLDER
        if not has_configuration(folder):
            raise CheckpointError(f"{folder / CONFIG_FILE}: no such file")
        return folder

    @property
    def audio_encoder(self) -> Path | None:
        """The directory of the encoder of continuous audio; None for families that hear by none,
        and where it is missing, which costs a model its hearing and nothing else."""
        if not self.spec.hears_embeddings or audio_encoder_fault(self.path) is not None:
            return None
        return self.path / AUDIO_ENCODER_FOLDER

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yields ``(name, tensor)`` for every tensor whose name starts with ``prefix``.

        Tensors are on the CPU in their stored dtype and are read one at a time.

        Raises:
            CheckpointError: a shard is not a safetensors file.
        """
        for shard in self.shards:
            try:
                with safe_open(shard, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 (not a mapping)
                        if name.startswith(prefix):
                            yield name, file.get_tensor(name)
            except SafetensorError as error:
                raise CheckpointError(f"{shard}: {error}") from error

    def tensor(self, name: str) -> Tensor:
        """One tensor by its exact name.

        Raises:
            CheckpointError: no shard holds it.
        """
        for found, tensor in self.tensors(name):
            if found == name:
                return tensor
        raise CheckpointError(f"{self.path}: the weights hold no tensor {name!r}")


def has_configuration(folder: Path) -> bool:
    """Whether there is a codec or an SSL model."""
    return find_configuration(folder) is not None


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file")
    return path


def _read_json(path: Path) -> dict[str, Any]:
    file = _existing(path)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: not a JSON object")
    return data


def _find_shards(directory: Path) -> tuple[Path, ...]:
    index = directory / WEIGHTS_INDEX_FILE
    if not index.is_file():
        return (_existing(directory / WEIGHTS_FILE),)
    weight_map = _read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index}: no weight_map")
    return tuple(_existing(directory / name) for name in sorted(set(weight_map.values())))
