"""Loading neural codecs."""

from collections.abc import Callable
from pathlib import Path

import torch

from vocoder_service.configuration import ESPNET_CONFIG, find_configuration, model_type
from vocoder_service.dac import load_dac, load_xcodec
from vocoder_service.decoder import Codec
from vocoder_service.encodec import load_encodec
from vocoder_service.espnet import load_espnet
from vocoder_service.mimi import load_mimi
from vocoder_service.precision import use_full_precision

__all__ = ["CODECS", "Codec", "load_codec"]

CODECS: dict[str, Callable[[Path, str, torch.dtype, int | None], Codec]] = {
    "dac": load_dac,
    "encodec": load_encodec,
    "mimi": load_mimi,
    "xcodec": load_xcodec,
}
"""What loads a codec, by the ``model_type`` of a checkpoint's config.json."""


def load_codec(
    directory: str | Path,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    num_codebooks: int | None = None,
) -> Codec:
    """Load the decoder of the codec in ``directory``.

    That is a codec of transformers (config.json and model*.safetensors) or an ESPnet DAC as ESPnet
    publishes it (config.yaml and one .pth file, there or in a folder below).

    ``num_codebooks`` serves only the first streams of a residual codec; default: all of them.
    Only in float32 (or finer) do joined windows equal a one-shot decode within one step of
    16-bit PCM; bfloat16 rounds differently for every shape.

    Raises:
        FileNotFoundError: no config.json or no weights there.
        ValueError: a codec of another type, or more codebooks than it has.
        RuntimeError: the weights do not fit the configuration.
    """
    use_full_precision()
    directory = Path(directory)
    config = find_configuration(directory)
    if config is None:
        raise FileNotFoundError(f"no config.json, and not one config.yaml, in {directory}")
    if config.name == ESPNET_CONFIG:
        return load_espnet(config, device, dtype, num_codebooks)
    kind = model_type(config)
    if kind not in CODECS:
        raise ValueError(f"unknown codec type {kind!r}; known: {', '.join(sorted(CODECS))}")
    return CODECS[kind](directory, device, dtype, num_codebooks)
