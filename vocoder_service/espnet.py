"""ESPnet's DAC, from the checkpoint as ESPnet publishes it.

It has little in common with Descript's codec of that name: SEANet with an LSTM, Snake instead of
ELU, and no causality. It is EnCodec's otherwise, so ESPnet itself is not needed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
import yaml
from torch.nn import functional

from vocoder_service.checkpoint import Weights, under, without_weight_norm
from vocoder_service.decoder import Codebooks, Codec, codebooks_used
from vocoder_service.seanet import SeanetConfig, seanet_decoder

# Of espnet2.gan_codec.dac.DACGenerator, for what a configuration leaves out.
_DEFAULTS = {
    "hidden_dim": 128,
    "codebook_dim": 8,
    "encdec_channels": 1,
    "encdec_n_filters": 32,
    "encdec_n_residual_layers": 1,
    "encdec_ratios": [8, 5, 4, 2],
    "encdec_activation": "Snake",
    "encdec_norm": "weight_norm",
    "encdec_kernel_size": 7,
    "encdec_residual_kernel_size": 7,
    "encdec_last_kernel_size": 7,
    "encdec_dilation_base": 2,
    "encdec_causal": False,
    "encdec_pad_mode": "reflect",
    "encdec_true_skip": False,
    "encdec_compress": 2,
    "encdec_lstm": 2,
    "decoder_trim_right_ratio": 1.0,
    "decoder_final_activation": None,
    "quantizer_n_q": 8,
    "quantizer_bins": 1024,
}
_GENERATOR = "codec.generator."


@dataclass(frozen=True)
class EspnetDac:
    """What ESPnet published: a description, and the generator's tensors, mapped and not read.

    Attributes:
        sample_rate: in Hz.
        generator: its parameters, with ESPnet's defaults.
        seanet: of encoder and decoder.
        tensors: under their names in the generator.
    """

    sample_rate: int
    generator: dict[str, Any]
    seanet: SeanetConfig
    tensors: dict[str, torch.Tensor]

    @classmethod
    def open(cls, config: Path) -> Self:
        """Of ``config.yaml``, and the weights that are beside it.

        Raises:
            FileNotFoundError: there is not exactly one .pth file.
            ValueError: another codec than DAC, or one of a form that cannot be served.
        """
        training = yaml.safe_load(config.read_text())
        if training.get("codec") != "dac":
            raise ValueError(f"unknown ESPnet codec {training.get('codec')!r}; known: dac")
        codec = training.get("codec_conf", {})
        generator = _DEFAULTS | codec.get("generator_params", {})
        seanet = _seanet_config(generator)
        return cls(codec.get("sampling_rate", 24000), generator, seanet, _read(config.parent))

    def half(self, name: str, device: str, dtype: torch.dtype) -> Weights:
        """Weights of the ``encoder`` or the ``decoder``, under this package's names: ESPnet wraps
        every convolution once more."""
        ours = {
            name.replace("convtr.convtr.", "conv.").replace("conv.conv.", "conv."): value
            for name, value in under(self.tensors, f"{name}.model.").items()
        }
        return Weights(without_weight_norm(ours), device, dtype)

    def codebooks(self, count: int | None, device: str, dtype: torch.dtype) -> list["Codebook"]:
        """Those of the first ``count`` streams; None: of all.

        Raises:
            ValueError: there are fewer.
            RuntimeError: the weights do not fit the configuration.
        """
        used = codebooks_used(self.generator["quantizer_n_q"], count)
        return [self._codebook(index, device, dtype) for index in range(used)]

    def _codebook(self, index: int, device: str, dtype: torch.dtype) -> "Codebook":
        weights = Weights(under(self.tensors, f"quantizer.vq.layers.{index}."), device, dtype)
        size, narrow, width = (
            self.generator[name] for name in ("quantizer_bins", "codebook_dim", "hidden_dim")
        )
        vectors = weights("_codebook.embed", size, narrow).clone()  # mapped only while it is read
        if narrow == width:
            return Codebook(vectors, vectors)
        into = weights("project_in.weight", narrow, width), weights("project_in.bias", narrow)
        out = weights("project_out.weight", width, narrow), weights("project_out.bias", width)
        return Codebook(vectors, functional.linear(vectors, *out), into)


@dataclass(frozen=True)
class Codebook:
    """Vectors of a stream's codes.

    Attributes:
        keys: [codes, codebook_dim]: the nearest one's number is the code.
        values: [codes, hidden_dim], which the codes stand for.
        projection: weight and bias of the linear layer in front of the keys; None: there is none.
    """

    keys: torch.Tensor
    values: torch.Tensor
    projection: tuple[torch.Tensor, torch.Tensor] | None = None


def load_espnet(config: Path, device: str, dtype: torch.dtype, num_codebooks: int | None) -> Codec:
    """The codec that ``config`` (config.yaml) describes, with the weights that are beside it.

    Raises:
        FileNotFoundError: there is not exactly one .pth file.
        ValueError: another codec than DAC, one of a form that cannot be served, or fewer codebooks
            than wanted.
        RuntimeError: the weights do not fit the configuration.
    """
    dac = EspnetDac.open(config)
    books = [book.values for book in dac.codebooks(num_codebooks, device, dtype)]
    layers = [
        Codebooks(books),
        *seanet_decoder(dac.seanet, dac.half("decoder", device, dtype), ""),
    ]
    return Codec(layers, device, dac.sample_rate, len(books), dac.generator["quantizer_bins"])


def _seanet_config(generator: dict[str, Any]) -> SeanetConfig:
    served: dict[str, list[Any]] = {
        "encdec_channels": [1],
        "encdec_activation": ["Snake"],
        "encdec_norm": ["none", "weight_norm"],
        "decoder_final_activation": [None],
    }
    for name, values in served.items():
        if generator[name] not in values:
            raise ValueError(f"an ESPnet DAC with {name} {generator[name]!r} cannot be served")
    if not generator["encdec_lstm"]:
        raise ValueError("an ESPnet DAC without an LSTM cannot be served")
    return SeanetConfig(
        hidden_size=generator["hidden_dim"],
        num_filters=generator["encdec_n_filters"],
        upsampling_ratios=generator["encdec_ratios"],
        num_residual_layers=generator["encdec_n_residual_layers"],
        kernel_size=generator["encdec_kernel_size"],
        last_kernel_size=generator["encdec_last_kernel_size"],
        residual_kernel_size=generator["encdec_residual_kernel_size"],
        dilation_growth_rate=generator["encdec_dilation_base"],
        compress=generator["encdec_compress"],
        use_causal_conv=generator["encdec_causal"],
        pad_mode=generator["encdec_pad_mode"],
        trim_right_ratio=generator["decoder_trim_right_ratio"],
        use_conv_shortcut=not generator["encdec_true_skip"],
        num_lstm_layers=generator["encdec_lstm"],
        snake=True,
    )


def _read(directory: Path) -> dict[str, torch.Tensor]:
    """The generator's tensors."""
    files = sorted(directory.glob("*.pth"))
    if len(files) != 1:
        raise FileNotFoundError(f"{directory} must hold one .pth file, not {len(files)}")
    # Mapped, since most of the file is the discriminators of the training.
    tensors = torch.load(files[0], map_location="cpu", weights_only=True, mmap=True)
    return under(tensors, _GENERATOR)
