"""Whether a model directory has what hears audio, told without loading anything."""

from __future__ import annotations

import zipfile
from pathlib import Path

from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.reasons import reason
from engine_adapter.safetensors_header import read_header
from vocoder_service.configuration import ESPNET_CONFIG, find_configuration

# Of the classes of transformers, whatever they are called in a checkpoint's other half.
_ENCODERS = ("encoder.", "acoustic_encoder.")
_SSL_FILES = ("config.json", "quantizer.json", "centroids.safetensors")
_ESPNET_ENCODER = b"codec.generator.encoder."
_AUDIO_ENCODER_FILES = ("config.json", "preprocessor_config.json", "adaptor.safetensors")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_NO_ENCODER = "its weights have no encoder"


def encoder_fault(directory: Path, *, units: bool) -> str | None:
    """Why codes cannot be made, beginning with the part at fault; None: they can.

    Args:
        directory: a model's.
        units: whether the family has a stream of an SSL model's units, too.
    """
    fault = _codec_fault(directory / CODEC_FOLDER)
    if fault is not None:
        return f"{CODEC_FOLDER}/: {fault}"
    fault = _ssl_fault(directory / SSL_FOLDER) if units else None
    return None if fault is None else f"{SSL_FOLDER}/: {fault}"


def audio_encoder_fault(directory: Path) -> str | None:
    """Why a model directory has no encoder of continuous audio, likewise; None: it has one."""
    folder = directory / AUDIO_ENCODER_FOLDER
    fault = _audio_encoder_fault(folder) if folder.is_dir() else "is missing"
    return None if fault is None else f"{AUDIO_ENCODER_FOLDER}/: {fault}"


def codec_weights_fault(codec: Path) -> str | None:
    """Why a codec that has a configuration cannot be loaded, with or without an encoder; None: as
    far as can be told without loading it, it can."""
    config = find_configuration(codec)
    if config is not None and config.name == ESPNET_CONFIG:
        published = list(config.parent.glob("*.pth"))
        if len(published) != 1:
            return f"it must hold one .pth file, not {len(published)}"
        return None if zipfile.is_zipfile(published[0]) else f"{published[0].name} is damaged"
    files = sorted(codec.glob("model*.safetensors"))
    return _damage(files) if files else "no model*.safetensors"


def _audio_encoder_fault(folder: Path) -> str | None:
    fault = _missing(folder, _AUDIO_ENCODER_FILES) or _weights_fault(folder)
    return fault or _damage([folder / "adaptor.safetensors"])


def _codec_fault(codec: Path) -> str | None:
    config = find_configuration(codec)
    if config is None or config.name != ESPNET_CONFIG:
        files = sorted(codec.glob("model*.safetensors"))
        names = () if (damage := _damage(files)) else [n for f in files for n in read_header(f)]
        return damage or (None if any(n.startswith(_ENCODERS) for n in names) else _NO_ENCODER)
    published = list(config.parent.glob("*.pth"))
    if len(published) != 1 or not zipfile.is_zipfile(published[0]):
        return _NO_ENCODER
    with zipfile.ZipFile(published[0]) as archive:  # names are in the pickle, and only there
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        return None if any(_ESPNET_ENCODER in archive.read(n) for n in pickles) else _NO_ENCODER


def _ssl_fault(ssl: Path) -> str | None:
    if (ssl / "config.json").is_file() or not (ssl / ESPNET_CONFIG).is_file():
        fault = _missing(ssl, _SSL_FILES) or _weights_fault(ssl)
        return fault or _damage([ssl / "centroids.safetensors"])
    checkpoints = len(list(ssl.glob("*.pth")))
    if checkpoints != 1:
        return f"it must hold one .pth file, not {checkpoints}"
    return None if len(list(ssl.glob("*.mdl"))) == 1 else _missing(ssl, _SSL_FILES[2:])


def _missing(folder: Path, names: tuple[str, ...]) -> str | None:
    missing = next((name for name in names if not (folder / name).is_file()), None)
    return None if missing is None else f"{missing} is missing"


def _weights_fault(folder: Path) -> str | None:
    """What keeps a model of transformers from being loaded."""
    files = [file for pattern in _WEIGHTS for file in sorted(folder.glob(pattern))]
    if not files:
        return "its weights are missing"
    return _damage([file for file in files if file.suffix == ".safetensors"])


def _damage(files: list[Path]) -> str | None:
    """Of the first of these safetensors files that is not whole."""
    for file in files:
        try:
            read_header(file)
        except OSError as error:
            return f"{file.name}: {reason(error)}"
        except ValueError as error:
            return str(error).removeprefix(f"{file.parent}/")
    return None
