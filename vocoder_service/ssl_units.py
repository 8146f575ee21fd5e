"""Units of a self-supervised speech model: a layer's features, each by its nearest centroid."""

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoConfig, AutoModel

QUANTIZER_FILE = "quantizer.json"
CENTROIDS_FILE = "centroids.safetensors"
CENTROIDS = "centroids"
_SAMPLE_RATE = 16000
# Speech models of transformers that take samples and convolve them into frames.
_TRANSFORMERS = ("hubert", "wav2vec2", "wavlm", "data2vec-audio")
_ESPNET = ("xeus",)


class MissingPackage(RuntimeError):
    """A model needs an optional extra that is not installed; the message names both."""


class SslTokenizer:
    """One unit per frame of 16 kHz audio."""

    sample_rate = _SAMPLE_RATE

    def __init__(
        self, model: Any, centroids: torch.Tensor, layer: int, *, normalise: bool = False
    ) -> None:
        """
        Args:
            model: a HuBERT-like model of transformers.
            centroids: float32 [units, hidden].
            layer: whose output is used; 0 is the input of the first.
            normalise: bring samples to mean 0 and variance 1 first.

        Raises:
            ValueError: the model has no such layer or another width.
        """
        config = model.config
        if not 0 <= layer <= config.num_hidden_layers:
            raise ValueError(f"layer {layer} is not among 0..{config.num_hidden_layers}")
        if centroids.ndim != 2 or centroids.shape[1] != config.hidden_size:
            raise ValueError(
                f"centroids must be [units, {config.hidden_size}], not {list(centroids.shape)}"
            )
        self.units = len(centroids)
        self._model = model.eval().requires_grad_(False)
        self._centroids = centroids.to(model.device, torch.float32)
        self._squares = self._centroids.square().sum(dim=1)
        self._layer = layer
        self._normalise = normalise
        self.hop_length = 1
        self._reach = 1  # samples that one frame reads
        for kernel, stride in zip(config.conv_kernel, config.conv_stride, strict=True):
            self._reach += (kernel - 1) * self.hop_length
            self.hop_length *= stride

    @classmethod
    def load(cls, directory: str | Path, device: str = "cpu") -> Self:
        """Reads ``config.json`` and ``model.safetensors`` of the model, ``centroids.safetensors``
        and ``quantizer.json``: ``{"layer": 18, "normalise": false}``.

        Raises:
            FileNotFoundError: one is missing.
            MissingPackage: it is ESPnet's own model.
            ValueError: it is of another type, or the files do not fit each other.
        """
        path = Path(directory)
        quantizer = json.loads((path / QUANTIZER_FILE).read_text())
        kind = json.loads((path / "config.json").read_text()).get("model_type")
        if kind in _ESPNET:
            raise MissingPackage(
                f"{path}: a model of type {kind!r} needs the optional extra 'espnet', which is "
                "not installed"
            )
        if kind not in _TRANSFORMERS:
            raise ValueError(f"{path}: {kind!r} is not one of {', '.join(_TRANSFORMERS)}")
        model = AutoModel.from_pretrained(
            path, config=AutoConfig.from_pretrained(path), dtype=torch.float32
        )
        centroids = load_file(path / CENTROIDS_FILE)[CENTROIDS]
        return cls(
            model.to(device),
            centroids,
            quantizer["layer"],
            normalise=quantizer.get("normalise", False),
        )

    @torch.inference_mode()
    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        """Units int32 [ceil(n / 320)] of mono ``samples`` float32 [n >= 1]."""
        frames = -(-len(samples) // self.hop_length)
        wave = torch.tensor(samples, device=self._model.device)
        if self._normalise:
            wave = functional.layer_norm(wave, wave.shape)
        # As many frames as the codec has: the last one's kernel reads a little beyond its end.
        length = (frames - 1) * self.hop_length + self._reach
        wave = functional.pad(wave, (0, length - len(wave)))
        output = self._model(wave[None], output_hidden_states=True)
        features = output.hidden_states[self._layer][0].float()
        # The squared distance, less the square of the features, which is the same for all.
        distances = self._squares - 2 * features @ self._centroids.T
        units: NDArray[np.int32] = distances.argmin(dim=1).cpu().numpy().astype(np.int32)
        return units
