"""Audio to what a model reads: codec codes, with SSL units where a family has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, DacModel, EncodecModel, MimiModel, XcodecModel

from vocoder_service.clips import (
    AudioEncoder,
    Codes,
    EncoderLimits,
    FrameEncoder,
    Samples,
    checked,
    whole_frames,
)
from vocoder_service.configuration import ESPNET_CONFIG, find_configuration, model_type
from vocoder_service.espnet_encoder import load_espnet_encoder
from vocoder_service.precision import use_full_precision
from vocoder_service.ssl_units import SslTokenizer


class CodecEncoder:
    """The encoding half of a transformers codec.

    Clips are encoded one at a time: what else is encoded cannot change the codes.
    """

    def __init__(self, model: Any, num_codebooks: int | None = None) -> None:
        """
        Args:
            model: one of ``CODEC_ENCODERS``, with all its parts.
            num_codebooks: the first so many are used; None: all.

        Raises:
            ValueError: the codec has fewer codebooks.
        """
        config = model.config
        self._model = model.eval().requires_grad_(False)
        self._codes = CODEC_ENCODERS[config.model_type]
        self.sample_rate: int = getattr(config, "sampling_rate", None) or config.sample_rate
        probe = self._frames(torch.zeros(1, 1, self.sample_rate))
        if num_codebooks is not None and num_codebooks > probe.shape[0]:
            raise ValueError(f"the codec has {probe.shape[0]} codebooks, not {num_codebooks}")
        self.num_codebooks: int = num_codebooks or probe.shape[0]
        self.hop_length = _hop_length(config)
        self.limits = EncoderLimits(self.hop_length)

    def encode(self, samples: Samples) -> Codes:
        wave = whole_frames(checked(samples), self.hop_length)
        codes = self._frames(torch.from_numpy(wave)[None, None])
        frames = len(wave) // self.hop_length
        if codes.shape[1] < frames:  # the codec drops what does not fill its last kernel
            wave = np.concatenate([wave, np.zeros(2 * self.hop_length, np.float32)])
            codes = self._frames(torch.from_numpy(wave)[None, None])
        return codes[: self.num_codebooks, :frames].T.cpu().numpy().astype(np.int32)

    @torch.inference_mode()
    def _frames(self, wave: torch.Tensor) -> torch.Tensor:
        """[codebooks, frames] of [1, 1, samples]."""
        wave = wave.to(self._model.device, self._model.dtype)
        return self._codes(self._model, wave)


class StreamEncoder:
    """SSL units in front of codec codes, aligned frame by frame."""

    def __init__(self, ssl: SslTokenizer, codec: FrameEncoder) -> None:
        """
        Raises:
            ValueError: their frames are not equally long.
        """
        ours = (ssl.sample_rate, ssl.hop_length)
        theirs = (codec.sample_rate, codec.hop_length)
        if ours != theirs:
            raise ValueError(
                f"SSL units of {ours[1]} samples at {ours[0]} Hz do not go with codes of "
                f"{theirs[1]} samples at {theirs[0]} Hz"
            )
        self._ssl, self._codec = ssl, codec
        self.sample_rate = codec.sample_rate
        self.limits = codec.limits

    def encode(self, samples: Samples) -> Codes:
        codes = self._codec.encode(samples)
        return np.concatenate([self._ssl.encode(samples)[:, None], codes], axis=1)


def load_encoder(
    codec_directory: str | Path,
    ssl_directory: str | Path | None = None,
    device: str = "cpu",
    num_codebooks: int | None = None,
) -> AudioEncoder:
    """The encoder of a model, in float32.

    Args:
        codec_directory: of a codec, with the weights of its encoder: see ``load_codec``.
        ssl_directory: see :class:`SslTokenizer`; None where the first stream is a codec's.
        num_codebooks: codec streams of the model.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a codec of another type, or the parts do not fit each other.
        RuntimeError: weights do not fit their configuration.
    """
    use_full_precision()
    codec = _load_codec_encoder(Path(codec_directory), device, num_codebooks)
    if ssl_directory is None:
        return codec
    return StreamEncoder(SslTokenizer.load(ssl_directory, device), codec)


def _load_codec_encoder(directory: Path, device: str, num_codebooks: int | None) -> FrameEncoder:
    file = find_configuration(directory)
    if file is None:
        raise FileNotFoundError(f"no config.json, and not one config.yaml, in {directory}")
    if file.name == ESPNET_CONFIG:
        return load_espnet_encoder(file, device, num_codebooks)
    kind = model_type(file)
    if kind not in CODEC_ENCODERS:
        raise ValueError(
            f"{directory}: a codec of type {kind!r} cannot encode; known: "
            + ", ".join(sorted(CODEC_ENCODERS))
        )
    model = AutoModel.from_pretrained(directory, dtype=torch.float32).to(device)
    return CodecEncoder(model, num_codebooks)


def _hop_length(config: Any) -> int:
    """Samples per frame."""
    if getattr(config, "hop_length", None) is not None:
        return int(config.hop_length)
    rate = getattr(config, "sampling_rate", None) or config.sample_rate
    return round(rate / config.frame_rate)


def _books_first(model: Any, wave: torch.Tensor) -> torch.Tensor:
    codes: torch.Tensor = model.encode(wave).audio_codes
    return codes[0]


def _encodec(model: Any, wave: torch.Tensor) -> torch.Tensor:
    widest = model.config.target_bandwidths[-1]
    codes: torch.Tensor = model.encode(wave, bandwidth=widest).audio_codes
    if len(codes) != 1:
        raise ValueError("an EnCodec that cuts audio into chunks is not supported")
    return codes[0, 0]


CODEC_ENCODERS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    DacModel.config_class.model_type: _books_first,
    EncodecModel.config_class.model_type: _encodec,
    MimiModel.config_class.model_type: _books_first,
    XcodecModel.config_class.model_type: _books_first,
}
"""How a codec's codes [codebooks, frames] are had from [1, 1, samples], by its model type."""
