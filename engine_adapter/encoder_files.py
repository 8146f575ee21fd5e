"""Whether a model directory has what hears audio, told without loading anything."""

from __future__ import annotations

import json
from pathlib import Path

from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER

# Of the classes of transformers, whatever they are called in a checkpoint's other half.
_ENCODERS = ("encoder.", "acoustic_encoder.")
_SSL_FILES = ("config.json", "quantizer.json", "centroids.safetensors")
_ESPNET_SSL = "xeus"
_AUDIO_ENCODER_FILES = ("config.json", "preprocessor_config.json")


def encoder_fault(directory: Path, *, units: bool) -> str | None:
    """Why codes cannot be made, beginning with the part at fault; None: they can.

    Args:
        directory: a model's.
        units: whether the family has a stream of an SSL model's units, too.
    """
    codec, ssl = directory / CODEC_FOLDER, directory / SSL_FOLDER
    if not (codec / "config.json").is_file():
        return f"{CODEC_FOLDER}/: it is no codec of Hugging Face, and no other can encode"
    if not any(name.startswith(_ENCODERS) for name in _tensors(codec)):
        return f"{CODEC_FOLDER}/: its weights have no encoder"
    if not units:
        return None
    for name in _SSL_FILES:
        if not (ssl / name).is_file():
            return f"{SSL_FOLDER}/: {name} is missing"
    if json.loads((ssl / "config.json").read_text()).get("model_type") == _ESPNET_SSL:
        return f"{SSL_FOLDER}/: ESPnet's own model needs a package that is not there"
    return None


def has_audio_encoder(directory: Path) -> bool:
    """Whether a model directory has an encoder of continuous audio, and its settings."""
    folder = directory / AUDIO_ENCODER_FOLDER
    return all((folder / name).is_file() for name in _AUDIO_ENCODER_FILES)


def _tensors(folder: Path) -> list[str]:
    """Names of all tensors, from the headers of the weights."""
    names: list[str] = []
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as weights:
            size = int.from_bytes(weights.read(8), "little")
            names += json.loads(weights.read(size))
    return names
