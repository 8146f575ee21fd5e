"""Reads a model directory (docs/generation.md, "Model directory")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine_adapter.encoder_files import audio_encoder_fault
from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.model_files import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    WEIGHTS_INDEX_FILE,
    CheckpointError,
    check_vocabulary,
    existing,
    find_shards,
    has_configuration,
    read_json,
)
from engine_adapter.spec import SpecError, StreamSpec

__all__ = [
    "CONFIG_FILE",
    "STREAM_EMBEDDING",
    "TOKENIZER_FILE",
    "WEIGHTS_FILE",
    "WEIGHTS_INDEX_FILE",
    "CheckpointError",
    "ModelDirectory",
    "has_configuration",
]

STREAM_EMBEDDING = "stream_embedding.weight"


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
        config = read_json(directory / CONFIG_FILE)
        try:
            spec = StreamSpec.load(directory)
        except SpecError as error:
            raise CheckpointError(str(error)) from error
        check_vocabulary(directory, config, spec)
        return cls(directory, config, spec, find_shards(directory))

    @property
    def tokenizer_file(self) -> Path:
        """``tokenizer.json``.

        Raises:
            CheckpointError: it is missing.
        """
        return existing(self.path / TOKENIZER_FILE)

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
