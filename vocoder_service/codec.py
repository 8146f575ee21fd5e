"""Neural codecs of transformers behind one protocol: codes in, waveform out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import nn
from transformers import DacModel, PreTrainedModel, XcodecModel

from vocoder_service.checkpoint import read_safetensors
from vocoder_service.encodec import load_encodec
from vocoder_service.espnet import find_espnet, load_espnet
from vocoder_service.frames import CodecShape
from vocoder_service.mimi import load_mimi
from vocoder_service.receptive_field import (
    context_frames,
    conv_layers,
    frames_at_start,
    output_length,
    upsampling,
)
from vocoder_service.staged import check_codes, codebooks_used
from vocoder_service.stages import Stages


class Codec(CodecShape, Protocol):
    """A codec's decoder."""

    @property
    def sample_rate(self) -> int:
        """Samples per second (Hz) of the decoded audio, one channel."""

    @property
    def stages(self) -> Stages | None:
        """The parts of a decoder that remembers; None where context is all that it hears."""

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Decode int64 ``codes`` [batch, num_codebooks, T >= 1] from any device.

        Returns float32 [batch, num_samples(T)] in [-1, 1], on the codec's device, no gradient.

        Raises:
            ValueError: wrong shape or type, or a code out of range.
        """


class TransformersCodec:
    """The decoding half of a transformers codec whose decoder is a chain of convolutions.

    A subclass names the class and its parts. Only the parts that decode are built and read: the
    model is laid out on the meta device, which costs no memory, the other children (encoders and,
    for Xcodec, the 95 M parameters of HuBERT) are removed, and the rest takes its weights from the
    checkpoint.
    """

    model_class: ClassVar[type[PreTrainedModel]]
    decoding_parts: ClassVar[tuple[str, ...]]
    decoder: ClassVar[str]
    sample_rate_key: ClassVar[str]
    num_codebooks_key: ClassVar[str]
    stages: ClassVar[None] = None

    def __init__(self, model: PreTrainedModel, num_codebooks: int | None = None) -> None:
        """Serve ``model``, which must hold the decoding parts, on its device and in its dtype.

        Raises:
            ValueError: ``num_codebooks`` is not among 1 .. the number that the config says.
        """
        config: Any = model.config
        available: int = getattr(config, self.num_codebooks_key)
        self._model: Any = model.eval().requires_grad_(False)
        self._layers = conv_layers(getattr(model, self.decoder))
        self.num_codebooks = codebooks_used(available, num_codebooks)
        self.codebook_size: int = config.codebook_size
        self.sample_rate: int = getattr(config, self.sample_rate_key)
        self.hop_length = upsampling(self._layers)
        self.left_context, self.right_context = context_frames(self._layers)
        self.first_frames = frames_at_start(self._layers)

    @classmethod
    def load(
        cls, directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None
    ) -> Self:
        """See ``load_codec``."""
        config = cls.model_class.config_class.from_pretrained(directory)
        with torch.device("meta"):
            model: nn.Module = cls.model_class(config)
        for name in [name for name, _ in model.named_children()]:
            if name not in cls.decoding_parts:
                delattr(model, name)
        weights = read_safetensors(directory, cls.decoding_parts)
        model.load_state_dict(weights, strict=True, assign=True)
        return cls(model.to(device=device, dtype=dtype), num_codebooks)

    def num_samples(self, frames: int) -> int:
        return output_length(self._layers, frames)

    @torch.inference_mode()
    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        check_codes(codes, self.num_codebooks, self.codebook_size)
        # TensorFloat-32, cuDNN's default, would make a window differ from the one-shot decode.
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            output = self._model.decode(audio_codes=codes.to(self._model.device), return_dict=True)
        # XcodecModel returns [batch, 1, samples], DacModel [batch, samples].
        waveform: torch.Tensor = output.audio_values.flatten(1)
        # Xcodec's decoder has no final tanh.
        return waveform.float().clamp(-1.0, 1.0)


class XcodecCodec(TransformersCodec):
    """X-Codec; the number of codebooks follows from the highest target bandwidth."""

    model_class = XcodecModel
    decoding_parts = ("quantizer", "fc2", "acoustic_decoder")
    decoder = "acoustic_decoder"
    sample_rate_key = "sample_rate"
    num_codebooks_key = "num_quantizers"


class DacCodec(TransformersCodec):
    """Descript Audio Codec."""

    model_class = DacModel
    decoding_parts = ("quantizer", "decoder")
    decoder = "decoder"
    sample_rate_key = "sampling_rate"
    num_codebooks_key = "n_codebooks"


CODECS: dict[str, Callable[[Path, str, torch.dtype, int | None], Codec]] = {
    "dac": DacCodec.load,
    "encodec": load_encodec,
    "mimi": load_mimi,
    "xcodec": XcodecCodec.load,
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
    directory = Path(directory)
    config = directory / "config.json"
    if not config.exists() and (espnet := find_espnet(directory)):
        return load_espnet(espnet, device, dtype, num_codebooks)
    model_type = json.loads(config.read_text()).get("model_type")
    if model_type not in CODECS:
        raise ValueError(f"unknown codec type {model_type!r}; known: {', '.join(sorted(CODECS))}")
    return CODECS[model_type](directory, device, dtype, num_codebooks)
