"""ESPnet's DAC, from the checkpoint as ESPnet publishes it.

It has little in common with Descript's codec of that name: SEANet with an LSTM, Snake instead of
ELU, and no causality. Its decoder is EnCodec's otherwise, so ESPnet itself is not needed.
"""

from pathlib import Path
from typing import Any

import torch
import yaml

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


def find_espnet(directory: Path) -> Path | None:
    """The one config.yaml in ``directory`` or below it, as in a model that ESPnet published."""
    configs = list(directory.rglob("config.yaml"))
    return configs[0] if len(configs) == 1 else None


def load_espnet(config: Path, device: str, dtype: torch.dtype, num_codebooks: int | None) -> Codec:
    """The codec that ``config`` (config.yaml) describes, with the weights that are beside it.

    Raises:
        FileNotFoundError: there is not exactly one .pth file.
        ValueError: another codec than DAC, one of a form that cannot be served, or fewer codebooks
            than wanted.
        RuntimeError: the weights do not fit the configuration.
    """
    training = yaml.safe_load(config.read_text())
    if training.get("codec") != "dac":
        raise ValueError(f"unknown ESPnet codec {training.get('codec')!r}; known: dac")
    codec = training.get("codec_conf", {})
    generator = _DEFAULTS | codec.get("generator_params", {})
    seanet = _seanet_config(generator)
    used = codebooks_used(generator["quantizer_n_q"], num_codebooks)
    tensors = _read(config.parent)
    quantizer = Weights(tensors, device, dtype)
    decoder = Weights(_decoder_weights(tensors), device, dtype)
    layers = [
        Codebooks([_table(quantizer, generator, index) for index in range(used)]),
        *seanet_decoder(seanet, decoder, ""),
    ]
    return Codec(
        layers, device, codec.get("sampling_rate", 24000), used, generator["quantizer_bins"]
    )


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
    """The generator's tensors. Nothing but the decoder's and quantizer's will be touched."""
    files = sorted(directory.glob("*.pth"))
    if len(files) != 1:
        raise FileNotFoundError(f"{directory} must hold one .pth file, not {len(files)}")
    # Mapped, since most of the file is the encoder and the discriminators of the training.
    tensors = torch.load(files[0], map_location="cpu", weights_only=True, mmap=True)
    return under(tensors, _GENERATOR)


def _decoder_weights(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The decoder's, under this package's names: ESPnet wraps every convolution once more."""
    ours = {
        name.replace("convtr.convtr.", "conv.").replace("conv.conv.", "conv."): value
        for name, value in under(tensors, "decoder.model.").items()
    }
    return without_weight_norm(ours)


def _table(weights: Weights, generator: dict[str, Any], index: int) -> torch.Tensor:
    """Vectors of a codebook, [codebook_size, hidden_dim], as the decoder sees them."""
    layer = f"quantizer.vq.layers.{index}"
    size, narrow, width = (
        generator[name] for name in ("quantizer_bins", "codebook_dim", "hidden_dim")
    )
    table = weights(f"{layer}._codebook.embed", size, narrow)
    if narrow == width:
        return table.clone()  # the file is mapped only while it is read
    projection = weights(f"{layer}.project_out.weight", width, narrow)
    return table @ projection.T + weights(f"{layer}.project_out.bias", width)
