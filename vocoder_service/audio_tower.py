"""Audio to rows of a model's input that are embeddings: Qwen3-Omni's encoder and what follows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder

from vocoder_service.clips import EncoderLimits, Samples, checked
from vocoder_service.log_mel import LogMel
from vocoder_service.precision import use_full_precision

ADAPTOR_FILE = "adaptor.safetensors"
_STRIDE = 8  # frames of features per row: three convolutions of stride 2


class AudioTower:
    """An encoder of continuous audio and the linear layer from it to a backbone.

    Clips are encoded one at a time: what else is encoded cannot change the rows.
    """

    def __init__(self, features: LogMel, encoder: Any, adaptor: nn.Linear) -> None:
        """
        Args:
            encoder: a ``Qwen3OmniMoeAudioEncoder``.
            adaptor: from its width to the backbone's.

        Raises:
            ValueError: these do not fit each other.
        """
        config = encoder.config
        if config.num_mel_bins != features.bins:
            raise ValueError(f"the encoder reads {config.num_mel_bins} bins, not {features.bins}")
        if config.output_dim != adaptor.in_features:
            raise ValueError(
                f"the encoder's rows are {config.output_dim} wide, not {adaptor.in_features}"
            )
        self._features = features
        self._encoder = encoder.eval().requires_grad_(False)
        self._adaptor = adaptor.eval().requires_grad_(False)
        self.sample_rate = features.sample_rate
        self.limits = EncoderLimits(_STRIDE * features.hop_length, features.max_samples)

    @classmethod
    def load(cls, directory: str | Path, width: int, device: str = "cpu") -> "AudioTower":
        """In float32.

        Args:
            directory: holds ``config.json``, ``preprocessor_config.json`` and the weights of the
                encoder, and ``adaptor.safetensors``.
            width: of the backbone.

        Raises:
            FileNotFoundError: a file is missing.
            ValueError: the files do not fit each other, or the backbone.
        """
        use_full_precision()
        path = Path(directory)
        features = LogMel.load(path)
        weights = load_file(path / ADAPTOR_FILE)
        if weights.keys() != {"weight", "bias"}:
            raise ValueError(f"{path / ADAPTOR_FILE}: holds {', '.join(sorted(weights))}")
        shape = tuple(weights["weight"].shape)
        if shape[0] != width:
            raise ValueError(f"{path}: its rows are {shape[0]} wide, the model's {width}")
        adaptor = nn.Linear(shape[1], shape[0])
        adaptor.load_state_dict(weights)
        encoder, found = Qwen3OmniMoeAudioEncoder.from_pretrained(
            path, dtype=torch.float32, attn_implementation="sdpa", output_loading_info=True
        )
        if wrong := sorted({*found["missing_keys"], *found["unexpected_keys"]}):
            raise ValueError(f"{path}: missing or unknown tensors: {', '.join(wrong[:3])}")
        return cls(features, encoder.to(device), adaptor.to(device))

    @torch.inference_mode()
    def encode(self, samples: Samples) -> NDArray[np.float32]:
        """Embeddings float32 [rows, width] of mono ``samples`` float32 [n >= 1] in [-1, 1].

        Raises:
            ValueError: no samples, too many, another shape or type, or one that is not finite.
        """
        features = self._features.of(checked(samples)).to(self._encoder.device)
        lengths = torch.tensor([features.shape[1]], device=features.device)
        encoded = self._encoder(input_features=features, feature_lens=lengths)
        rows: NDArray[np.float32] = self._adaptor(encoded.last_hidden_state).cpu().numpy()
        return rows
