"""Units of a self-supervised speech model: a layer's features, each by its nearest centroid."""

import json
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoConfig, AutoModel

from vocoder_service import xeus
from vocoder_service.configuration import model_type
from vocoder_service.kmeans_file import read_centroids
from vocoder_service.nearest import nearest
from vocoder_service.precision import use_full_precision
from vocoder_service.xeus import Xeus

QUANTIZER_FILE = "quantizer.json"
CENTROIDS_FILE = "centroids.safetensors"
CENTROIDS = "centroids"
KMEANS_FILES = "*.mdl"
_SAMPLE_RATE = 16000
# Speech models of transformers that take samples and convolve them into frames.
_TRANSFORMERS = ("hubert", "wav2vec2", "wavlm", "data2vec-audio")


class SpeechModel(Protocol):
    """Makes features of 16 kHz audio. Attributes as of ``Xeus``."""

    width: int
    layers: int
    hop_length: int
    reach: int

    def features(self, wave: torch.Tensor, layer: int) -> torch.Tensor:
        """Float32 [frames, width] of samples [n >= reach]; layer 0 is the input of the first."""


class TransformersModel:
    """A HuBERT-like model of transformers."""

    def __init__(self, model: Any) -> None:
        config = model.config
        self._model = model.eval().requires_grad_(False)
        self.width: int = config.hidden_size
        self.layers: int = config.num_hidden_layers
        self.hop_length, self.reach = 1, 1
        for kernel, stride in zip(config.conv_kernel, config.conv_stride, strict=True):
            self.reach += (kernel - 1) * self.hop_length
            self.hop_length *= stride

    @torch.inference_mode()
    def features(self, wave: torch.Tensor, layer: int) -> torch.Tensor:
        output = self._model(wave[None], output_hidden_states=True)
        features: torch.Tensor = output.hidden_states[layer][0].float()
        return features


class SslTokenizer:
    """One unit per frame of 16 kHz audio."""

    sample_rate = _SAMPLE_RATE

    def __init__(
        self,
        model: SpeechModel,
        centroids: torch.Tensor,
        layer: int,
        *,
        normalise: bool = False,
    ) -> None:
        """
        Args:
            centroids: float32 [units, width], on the model's device.
            layer: whose features are used.
            normalise: bring samples to mean 0 and variance 1 first.

        Raises:
            ValueError: the model has no such layer or another width.
        """
        if not 0 <= layer <= model.layers:
            raise ValueError(f"layer {layer} is not among 0..{model.layers}")
        if centroids.ndim != 2 or centroids.shape[1] != model.width:
            raise ValueError(
                f"centroids must be [units, {model.width}], not {list(centroids.shape)}"
            )
        self.units = len(centroids)
        self.hop_length = model.hop_length
        self._model = model
        self._centroids = centroids.float()
        self._layer = layer
        self._normalise = normalise

    @classmethod
    def load(cls, directory: str | Path, device: str = "cpu") -> Self:
        """Reads the model: ``config.json`` and ``model.safetensors`` of transformers, or XEUS as
        ESPnet publishes it, ``config.yaml`` and one .pth file; its centroids:
        ``centroids.safetensors`` or the .mdl file; and ``quantizer.json``:
        ``{"layer": 18, "normalise": false}``, which XEUS can be without: the last layer, then.

        Raises:
            FileNotFoundError: one is missing.
            ValueError: it is of another type, or the files do not fit each other.
            RuntimeError: the weights do not fit the configuration.
        """
        use_full_precision()
        path = Path(directory)
        model: SpeechModel
        if not (path / "config.json").exists() and (path / xeus.CONFIG_FILE).exists():
            model = Xeus.load(path, device)
            quantizer: dict[str, Any] = {"layer": model.layers}
            if (path / QUANTIZER_FILE).exists():
                quantizer |= json.loads((path / QUANTIZER_FILE).read_text())
        else:
            quantizer = json.loads((path / QUANTIZER_FILE).read_text())
            model = _transformers_model(path, device)
        return cls(
            model,
            _centroids(path).to(device),
            quantizer["layer"],
            normalise=quantizer.get("normalise", False),
        )

    @torch.inference_mode()
    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        """Units int32 [ceil(n / 320)] of mono ``samples`` float32 [n >= 1]."""
        frames = -(-len(samples) // self.hop_length)
        wave = torch.tensor(samples, device=self._centroids.device)
        if self._normalise:
            wave = functional.layer_norm(wave, wave.shape)
        # As many frames as the codec has: the last one's kernel reads a little beyond its end.
        length = (frames - 1) * self.hop_length + self._model.reach
        wave = functional.pad(wave, (0, length - len(wave)))
        features = self._model.features(wave, self._layer)
        units: NDArray[np.int32] = nearest(features, self._centroids).cpu().numpy().astype(np.int32)
        return units


def _transformers_model(path: Path, device: str) -> TransformersModel:
    kind = model_type(path / "config.json")
    if kind not in _TRANSFORMERS:
        raise ValueError(f"{path}: {kind!r} is not one of {', '.join(_TRANSFORMERS)}")
    model = AutoModel.from_pretrained(
        path, config=AutoConfig.from_pretrained(path), dtype=torch.float32
    )
    return TransformersModel(model.to(device))


def _centroids(path: Path) -> torch.Tensor:
    files = sorted(path.glob(KMEANS_FILES))
    if (path / CENTROIDS_FILE).exists() or len(files) != 1:
        return load_file(path / CENTROIDS_FILE)[CENTROIDS]
    return torch.from_numpy(read_centroids(files[0]))
