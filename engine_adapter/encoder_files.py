"""Whether a model directory has what hears audio, told without loading anything."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER

# Of the classes of transformers, whatever they are called in a checkpoint's other half.
_ENCODERS = ("encoder.", "acoustic_encoder.")
_SSL_FILES = ("config.json", "quantizer.json", "centroids.safetensors")
_ESPNET_CONFIG, _ESPNET_ENCODER = "config.yaml", b"codec.generator.encoder."
_AUDIO_ENCODER_FILES = ("config.json", "preprocessor_config.json")


def encoder_fault(directory: Path, *, units: bool) -> str | None:
    """Why codes cannot be made, beginning with the part at fault; None: they can.

    Args:
        directory: a model's.
        units: whether the family has a stream of an SSL model's units, too.
    """
    if not _has_encoder(directory / CODEC_FOLDER):
        return f"{CODEC_FOLDER}/: its weights have no encoder"
    if not units:
        return None
    fault = _ssl_fault(directory / SSL_FOLDER)
    return None if fault is None else f"{SSL_FOLDER}/: {fault}"


def has_audio_encoder(directory: Path) -> bool:
    """Whether a model directory has an encoder of continuous audio, and its settings."""
    folder = directory / AUDIO_ENCODER_FOLDER
    return all((folder / name).is_file() for name in _AUDIO_ENCODER_FILES)


def _has_encoder(codec: Path) -> bool:
    if (codec / "config.json").is_file():
        return any(name.startswith(_ENCODERS) for name in _tensors(codec))
    files = [path for path in codec.rglob("*.pth") if (path.parent / _ESPNET_CONFIG).is_file()]
    if len(files) != 1 or not zipfile.is_zipfile(files[0]):
        return False
    with zipfile.ZipFile(files[0]) as archive:  # names are in the pickle, and only there
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        return any(_ESPNET_ENCODER in archive.read(name) for name in pickles)


def _ssl_fault(ssl: Path) -> str | None:
    names: tuple[str, ...] = _SSL_FILES
    if not (ssl / "config.json").is_file() and (ssl / _ESPNET_CONFIG).is_file():
        checkpoints = len(list(ssl.glob("*.pth")))
        if checkpoints != 1:
            return f"it must hold one .pth file, not {checkpoints}"
        names = () if len(list(ssl.glob("*.mdl"))) == 1 else ("centroids.safetensors",)
    missing = next((name for name in names if not (ssl / name).is_file()), None)
    return None if missing is None else f"{missing} is missing"


def _tensors(folder: Path) -> list[str]:
    """Names of all tensors, from the headers of the weights."""
    names: list[str] = []
    for file in sorted(folder.glob("model*.safetensors")):
        with file.open("rb") as weights:
            size = int.from_bytes(weights.read(8), "little")
            names += json.loads(weights.read(size))
    return names
