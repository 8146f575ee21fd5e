"""Whether a model directory has all that serving it takes, told without loading a weight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_adapter.encoder_files import codec_weights_fault
from engine_adapter.folders import CODEC_FOLDER
from engine_adapter.model_files import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    CheckpointError,
    check_vocabulary,
    existing,
    find_shards,
    has_configuration,
)
from engine_adapter.reasons import reason
from engine_adapter.safetensors_header import read_header
from engine_adapter.spec import SPEC_FILE, StreamSpec
from engine_adapter.tokenizer import read_tokenizer


def check_whole(directory: Path, config: Mapping[str, Any], spec: StreamSpec) -> None:
    """
    Args:
        config: content of ``config.json``.

    Raises:
        CheckpointError: a part is missing, cut off, or fits no other; the message names its file.
    """
    check_vocabulary(directory, config, spec)
    for shard in find_shards(directory):
        try:
            read_header(shard)
        except OSError as error:
            raise CheckpointError(f"{shard}: {reason(error)}") from error
        except ValueError as error:  # names the file itself
            raise CheckpointError(str(error)) from error
    if spec.text is None:
        raise CheckpointError(f"{directory / SPEC_FILE}: has no text, and cannot be served")
    read_tokenizer(existing(directory / TOKENIZER_FILE), spec.text)
    codec = directory / CODEC_FOLDER
    if not codec.is_dir():
        raise CheckpointError(f"{codec}: no such directory; the model has no codec")
    if not has_configuration(codec):
        raise CheckpointError(f"{codec / CONFIG_FILE}: no such file")
    if fault := codec_weights_fault(codec):
        raise CheckpointError(f"{codec}: {fault}")
