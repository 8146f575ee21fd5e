"""The codec alone: speech to codes and back, which the language model cannot better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file
from transformers import DacConfig
from transformers.models.dac.modeling_dac import DacResidualVectorQuantizer

from demo_voice.features import frame_features
from demo_voice.quantizer import encode
from engine_adapter.checkpoint import WEIGHTS_FILE
from vocoder_service.codec import load_codec

_QUANTIZER = "quantizer."


class RoundTrip:
    """A codec's quantizer on features of the speech, and the decoder that the service runs."""

    def __init__(self, codec: Path) -> None:
        """Loads the codec of the directory ``codec``.

        Raises:
            FileNotFoundError: it has no weights.
            ValueError: it is not a codec.
        """
        self._codec = load_codec(codec)
        weights = load_file(codec / WEIGHTS_FILE)
        # Float32, as when the training speech was coded: the nearest code is a close decision.
        self._quantizer = DacResidualVectorQuantizer(DacConfig.from_pretrained(codec)).eval()
        self._quantizer.load_state_dict(
            {
                name.removeprefix(_QUANTIZER): tensor.float()
                for name, tensor in weights.items()
                if name.startswith(_QUANTIZER)
            }
        )

    def __call__(self, samples: NDArray[np.int16]) -> NDArray[np.int16]:
        """What comes back of int16 ``[samples]`` at 16 kHz, in the same form and length."""
        codes = encode(self._quantizer, frame_features(samples))
        wave = self._codec.decode(codes.T[None])[0, : len(samples)]
        return (wave.numpy() * 32767).round().astype(np.int16)
