"""Descript's DAC, and X-Codec, whose decoder is DAC's but for its lengths and its end."""

from math import ceil
from pathlib import Path
from typing import Any

import torch
from transformers import DacConfig, XcodecConfig

from vocoder_service.activations import Snake
from vocoder_service.checkpoint import Weights, read_safetensors
from vocoder_service.decoder import Codebooks, Codec, codebooks_used, linear
from vocoder_service.streaming import Chain, Convolution, Layer, Pointwise, Residual, Upsampling

_DILATIONS = (1, 3, 9)
_KERNEL = 7


def load_dac(directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None) -> Codec:
    """DAC. See ``load_codec``."""
    config: Any = DacConfig.from_pretrained(directory)
    used = codebooks_used(config.n_codebooks, num_codebooks)
    weights = Weights(read_safetensors(directory, ("quantizer", "decoder")), device, dtype)
    size, narrow, width = config.codebook_size, config.codebook_dim, config.hidden_size
    tables = []
    for index in range(used):
        name = f"quantizer.quantizers.{index}"
        projection = weights(f"{name}.out_proj.weight", width, narrow, 1)[:, :, 0]
        bias = weights(f"{name}.out_proj.bias", width)
        tables.append(weights(f"{name}.codebook.weight", size, narrow) @ projection.T + bias)
    layers: list[Layer] = [
        Codebooks(tables),
        *_decoder(weights, "decoder", config, whole_frames=False),
        Pointwise(torch.tanh),
    ]
    weights.check_all_taken("decoder.")
    return Codec(layers, device, config.sampling_rate, used, size)


def load_xcodec(
    directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None
) -> Codec:
    """X-Codec; the number of codebooks follows from the highest target bandwidth.

    Nothing is read of its encoders, of which HuBERT alone has 95 M parameters. See ``load_codec``.
    """
    config: Any = XcodecConfig.from_pretrained(directory)
    used = codebooks_used(config.num_quantizers, num_codebooks)
    parts = ("quantizer", "fc2", "acoustic_decoder")
    weights = Weights(read_safetensors(directory, parts), device, dtype)
    size, width, acoustic = config.codebook_size, config.codebook_dim, config.acoustic_model_config
    name = "quantizer.quantizers.{}.codebook.embed"
    layers: list[Layer] = [
        Codebooks([weights(name.format(index), size, width) for index in range(used)]),
        linear(weights, "fc2", config.hidden_size, acoustic.hidden_size),
        *_decoder(weights, "acoustic_decoder", acoustic, whole_frames=True),
    ]
    weights.check_all_taken("acoustic_decoder.")
    return Codec(layers, device, config.sample_rate, used, size)


def _decoder(weights: Weights, name: str, config: Any, whole_frames: bool) -> list[Layer]:
    """
    Args:
        config: of the class ``DacConfig``.
        whole_frames: whether an upsampling by an odd number makes as many samples of the last
            input as of any other, and not one less.
    """
    width = config.decoder_hidden_size
    layers: list[Layer] = [_convolution(weights, f"{name}.conv1", config.hidden_size, width)]
    for index, stride in enumerate(config.upsampling_ratios):
        block = f"{name}.block.{index}"
        layers.append(_snake(weights, f"{block}.snake1", width))
        padding = ceil(stride / 2)
        layers.append(
            Upsampling(
                weights(f"{block}.conv_t1.weight", width, width // 2, 2 * stride),
                weights(f"{block}.conv_t1.bias", width // 2),
                stride,
                left=padding,
                right=padding - (stride % 2 if whole_frames else 0),
            )
        )
        width //= 2
        for number, dilation in enumerate(_DILATIONS, start=1):
            layers.append(_residual(weights, f"{block}.res_unit{number}", width, dilation))
    layers.append(_snake(weights, f"{name}.snake1", width))
    layers.append(_convolution(weights, f"{name}.conv2", width, 1))
    return layers


def _residual(weights: Weights, name: str, width: int, dilation: int) -> Residual:
    return Residual(
        Chain(
            [
                _snake(weights, f"{name}.snake1", width),
                _convolution(weights, f"{name}.conv1", width, width, dilation=dilation),
                _snake(weights, f"{name}.snake2", width),
                _convolution(weights, f"{name}.conv2", width, width, kernel=1),
            ]
        )
    )


def _snake(weights: Weights, name: str, width: int) -> Snake:
    return Snake(weights(f"{name}.alpha", 1, width, 1).flatten())


def _convolution(
    weights: Weights,
    name: str,
    inputs: int,
    outputs: int,
    kernel: int = _KERNEL,
    dilation: int = 1,
) -> Convolution:
    return Convolution(
        weights(f"{name}.weight", outputs, inputs, kernel),
        weights(f"{name}.bias", outputs),
        dilation,
        left=dilation * (kernel - 1) // 2,
    )
