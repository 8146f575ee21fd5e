"""What a model directory says of audio, read without loading anything."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from engine_adapter.spec import SpecError

# As in engine_adapter.checkpoint, which would bring torch.
_CODEC, _SSL = "codec", "ssl"
_RATES = ("sampling_rate", "sample_rate")


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
        file = directory / _CODEC / "config.json"
        try:
            config = json.loads(file.read_text())
        except (OSError, json.JSONDecodeError) as error:
            raise SpecError(f"{file}: {error}") from error
        rates = [config[key] for key in _RATES if config.get(key) is not None]
        if not rates:
            raise SpecError(f"{file}: has no sample rate")
        return cls(int(rates[0]), _fingerprint(directory))


def _fingerprint(directory: Path) -> str:
    """Of the configurations, and of names and sizes of the weights."""
    digest = hashlib.sha256()
    for folder in (_CODEC, _SSL):
        for file in sorted((directory / folder).glob("*")):
            digest.update(f"{folder}/{file.name} {file.stat().st_size}\n".encode())
            if file.suffix == ".json":
                digest.update(file.read_bytes())
    return digest.hexdigest()[:32]
