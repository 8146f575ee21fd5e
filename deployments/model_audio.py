"""What a model directory says of audio, read without loading anything."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine_adapter.folders import CODEC_FOLDER, SSL_FOLDER
from engine_adapter.spec import SpecError

# As in engine_adapter.checkpoint, which would bring torch.
_CONFIGURATIONS = (".json", ".yaml")
_RATES = ("sampling_rate", "sample_rate")
_ESPNET_RATE = 24000  # of a codec of ESPnet's whose configuration has none


@dataclass(frozen=True)
class ModelAudio:
    """A model's audio.

    Attributes:
        sample_rate: of what it speaks and hears, in Hz.
        encoder: names what makes codes of audio; models with the same one have the same codes.
    """

    sample_rate: int
    encoder: str

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
        except (OSError, yaml.YAMLError) as error:
            raise SpecError(f"{file}: {error}") from error
        rate = _sample_rate(config, of_espnet=file.suffix == ".yaml")
        if rate is None:
            raise SpecError(f"{file}: has no sample rate")
        return cls(rate, _fingerprint(directory))


def _configuration(codec: Path) -> Path:
    """The codec's: a Hugging Face one's, or ESPnet's, which may stand in a folder below."""
    of_espnet = sorted(codec.rglob("config.yaml"))
    file = codec / "config.json"
    return of_espnet[0] if len(of_espnet) == 1 and not file.exists() else file


def _sample_rate(config: Any, *, of_espnet: bool) -> int | None:
    if not isinstance(config, dict):
        return None
    if of_espnet:
        return int((config.get("codec_conf") or {}).get("sampling_rate", _ESPNET_RATE))
    rates = [config[key] for key in _RATES if config.get(key) is not None]
    return int(rates[0]) if rates else None


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
