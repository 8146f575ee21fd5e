"""The spectrogram that an encoder of continuous audio reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import WhisperFeatureExtractor

SETTINGS_FILE = "preprocessor_config.json"
BAGPIPER_FEATURES: dict[str, Any] = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": 128,
    "sampling_rate": 16000,
    "hop_length": 160,
    "n_fft": 400,
    "chunk_length": 300,
    "padding_value": 0.0,
    "dither": 0.0,
    "do_normalize": True,
}
"""Qwen3-Omni's settings, and ESPnet's ``do_normalize``."""


class LogMel:
    """Log-mel features of one clip, as Bagpiper was trained on them.

    Transformers' Whisper features. A clip stands in silence as long as the longest one: what lies
    behind its end is zeros, not a mirror of it.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings``: those of transformers' ``WhisperFeatureExtractor``, and ``do_normalize``:
        whether a clip's samples are first brought to mean 0 and variance 1."""
        self._extractor: Any = WhisperFeatureExtractor(**settings)
        self._normalise = bool(settings.get("do_normalize", False))
        self.sample_rate: int = self._extractor.sampling_rate
        self.hop_length: int = self._extractor.hop_length
        self.bins: int = self._extractor.feature_size
        self.max_samples: int = self._extractor.n_samples

    @classmethod
    def load(cls, directory: str | Path) -> "LogMel":
        """From ``preprocessor_config.json``.

        Raises:
            FileNotFoundError: it is missing.
            ValueError: it is no JSON object.
        """
        file = Path(directory) / SETTINGS_FILE
        settings = json.loads(file.read_text())
        if not isinstance(settings, dict):
            raise ValueError(f"{file}: not a JSON object")
        return cls(settings)

    def of(self, samples: NDArray[np.float32]) -> torch.Tensor:
        """Features float32 [bins, ceil(n / hop_length)] of mono ``samples`` float32 [n >= 1].

        Raises:
            ValueError: more than ``max_samples``.
        """
        if len(samples) > self.max_samples:
            raise ValueError(f"{len(samples)} samples are too many; at most {self.max_samples}")
        frames = -(-len(samples) // self.hop_length)
        # The rest of the longest clip's silence has no part in the frames that are kept.
        reach = frames * self.hop_length + self._extractor.n_fft
        features = self._extractor(
            [samples],
            sampling_rate=self.sample_rate,
            max_length=min(reach, self.max_samples),
            truncation=False,
            do_normalize=self._normalise,
            return_tensors="pt",
        ).input_features[0]
        return torch.as_tensor(features)[:, :frames]
