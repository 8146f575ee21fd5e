"""What a model directory says of audio, read without loading anything."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import yaml

from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.model_files import read_json
from engine_adapter.reasons import reason
from engine_adapter.spec import SpecError
from vocoder_service.configuration import find_configuration

_CONFIGURATIONS = (".json", ".yaml")
_RATES = ("sampling_rate", "sample_rate")
# Of a codec of ESPnet's whose configuration has none.
_ESPNET_RATE, _ESPNET_RATIOS = 24000, (8, 5, 4, 2)
_RATIOS = ("downsampling_ratios", "upsampling_ratios")
_HALVINGS = {"mimi": 2}  # of frames, behind the convolutions
_FRAME, _FRAMES = 320, {"dac": 512, "mimi": 1920}  # of a codec whose configuration has no ratios
_FEATURES_PER_ROW = 8  # three convolutions of stride 2


@dataclass(frozen=True)
class ModelAudio:
    """A model's audio.

    Attributes:
        sample_rate: of what it speaks and hears, in Hz.
        encoder: names what makes codes of audio; models with the same one have the same codes.
        samples_per_row: of what it hears, about; of what it speaks, where it hears nothing.
        samples_per_frame: of its codec.
    """

    sample_rate: int
    encoder: str
    samples_per_row: int
    samples_per_frame: int

    @classmethod
    def of(cls, directory: Path) -> ModelAudio:
        """
        Args:
            directory: a model's.

        Raises:
            SpecError: its codec has no configuration, or that has no sample rate.
        """
        file = _configuration(directory / CODEC_FOLDER)
        try:
            config = yaml.safe_load(file.read_text())  # JSON is YAML
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            raise SpecError(f"{file}: {reason(error)}") from error
        of_espnet = file.suffix == ".yaml"
        try:
            rate = _sample_rate(config, of_espnet=of_espnet)
            if rate is None:
                raise SpecError(f"{file}: has no sample rate")
            per_frame = _samples_per_frame(config, of_espnet=of_espnet)
        except (AttributeError, TypeError, OverflowError) as error:
            raise SpecError(f"{file}: is no configuration of a codec: {error}") from error
        per_row = _samples_per_feature_row(directory / AUDIO_ENCODER_FOLDER)
        return cls(rate, _fingerprint(directory), per_row or per_frame, per_frame)


def _configuration(codec: Path) -> Path:
    """The codec's; where there is none, the missing one of a Hugging Face codec."""
    return find_configuration(codec) or codec / "config.json"


def _sample_rate(config: Any, *, of_espnet: bool) -> int | None:
    if not isinstance(config, dict):
        return None
    if of_espnet:
        return int((config.get("codec_conf") or {}).get("sampling_rate", _ESPNET_RATE))
    rates = [config[key] for key in _RATES if config.get(key) is not None]
    return int(rates[0]) if rates else None


def _samples_per_frame(config: dict[str, Any], *, of_espnet: bool) -> int:
    if of_espnet:
        generator = (config.get("codec_conf") or {}).get("generator_params") or {}
        return prod(generator.get("encdec_ratios") or _ESPNET_RATIOS)
    convolutions = config.get("acoustic_model_config") or config
    kind = config.get("model_type", "")
    ratios = next((convolutions[key] for key in _RATIOS if convolutions.get(key)), None)
    if ratios is None:
        return _FRAMES.get(kind, _FRAME)
    return prod(ratios) * _HALVINGS.get(kind, 1)


def _samples_per_feature_row(encoder: Path) -> int | None:
    """Of an encoder of continuous audio; None: there is none."""
    file = encoder / "preprocessor_config.json"
    if not file.is_file():
        return None
    hop = read_json(file).get("hop_length")
    if type(hop) is not int:
        raise SpecError(f"{file}: hop_length is {hop!r}, not a whole number")
    return hop * _FEATURES_PER_ROW


def _fingerprint(directory: Path) -> str:
    """Of the configurations, and of names and sizes of the weights."""
    digest = hashlib.sha256()
    for folder in (CODEC_FOLDER, SSL_FOLDER):
        files = (path for path in (directory / folder).rglob("*") if path.is_file())
        for file in sorted(files):
            name = file.relative_to(directory).as_posix()
            digest.update(f"{name} {file.stat().st_size}\n".encode())
            if file.suffix in _CONFIGURATIONS:
                digest.update(file.read_bytes())
    return digest.hexdigest()[:32]
