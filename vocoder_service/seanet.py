"""SEANet's decoder, which EnCodec, Mimi and ESPnet's codecs share."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any

from torch import nn
from torch.nn import functional

from vocoder_service.activations import Snake
from vocoder_service.checkpoint import Weights
from vocoder_service.lstm import ResidualLstm
from vocoder_service.streaming import (
    Chain,
    Convolution,
    Layer,
    Pointwise,
    Residual,
    Upsampling,
    check_pad_mode,
)


@dataclass(frozen=True)
class SeanetConfig:
    """Widths and kernels, under the names of EnCodec's configuration.

    Raises:
        ValueError: an unknown way of padding.
    """

    hidden_size: int
    num_filters: int
    upsampling_ratios: Sequence[int]
    num_residual_layers: int
    kernel_size: int
    last_kernel_size: int
    residual_kernel_size: int
    dilation_growth_rate: int
    compress: int
    use_causal_conv: bool
    pad_mode: str
    trim_right_ratio: float
    use_conv_shortcut: bool
    num_lstm_layers: int
    snake: bool = False
    """x + sin(x)^2 instead of ELU."""

    def __post_init__(self) -> None:
        check_pad_mode(self.pad_mode)


def seanet_config(config: Any, num_lstm_layers: int) -> SeanetConfig:
    """Of a configuration of transformers that has the same names."""
    names = {field.name for field in fields(SeanetConfig)} - {"num_lstm_layers", "snake"}
    shared = {name: getattr(config, name) for name in names}
    return SeanetConfig(**shared, num_lstm_layers=num_lstm_layers)


def seanet_decoder(config: SeanetConfig, weights: Weights, prefix: str) -> list[Layer]:
    """The decoder's layers.

    Args:
        prefix: of the names of the weights, which number the layers as published.

    Raises:
        RuntimeError: the weights do not fit the configuration.
    """
    width = config.num_filters * 2 ** len(config.upsampling_ratios)
    last = config.last_kernel_size
    layers: list[Layer] = []

    def name() -> str:
        """Of the next layer. Activations have numbers too."""
        return f"{prefix}{len(layers)}"

    layers.append(
        convolution(config, weights, name(), config.hidden_size, width, config.kernel_size)
    )
    if config.num_lstm_layers:
        layers.append(residual_lstm(config, weights, name(), width))
    for ratio in config.upsampling_ratios:
        layers.append(activation(config, weights, name()))
        layers.append(upsampling(config, weights, name(), width, width // 2, ratio))
        width //= 2
        for index in range(config.num_residual_layers):
            dilation = config.dilation_growth_rate**index
            layers.append(residual(config, weights, name(), width, dilation))
    layers.append(activation(config, weights, name()))
    layers.append(convolution(config, weights, name(), width, 1, last))
    weights.check_all_taken(prefix)
    return layers


def upsampling(
    config: SeanetConfig,
    weights: Weights,
    name: str,
    inputs: int,
    outputs: int,
    stride: int,
    depthwise: bool = False,
) -> Upsampling:
    """A transposed convolution; without a bias if it is depthwise."""
    kernel = 2 * stride
    excess = kernel - stride
    right = ceil(excess * config.trim_right_ratio) if config.use_causal_conv else excess // 2
    return Upsampling(
        weights(f"{name}.conv.weight", inputs, 1 if depthwise else outputs, kernel),
        None if depthwise else weights(f"{name}.conv.bias", outputs),
        stride,
        left=excess - right,
        right=right,
        depthwise=depthwise,
    )


def activation(config: SeanetConfig, weights: Weights, name: str) -> Layer:
    """ELU, or Snake with the slope that the checkpoint has for it; 1 where it has none."""
    if not config.snake:
        return Pointwise(functional.elu)
    slope = f"{name}.alpha"
    return Snake(weights(slope, 1, 1, 1).flatten() if slope in weights else None)


def residual_lstm(config: SeanetConfig, weights: Weights, name: str, width: int) -> ResidualLstm:
    """The LSTM between convolutions."""
    lstm = nn.LSTM(width, width, config.num_lstm_layers)
    return ResidualLstm(weights.load(lstm, f"{name}.lstm."))


def residual(
    config: SeanetConfig, weights: Weights, name: str, width: int, dilation: int
) -> Residual:
    """A dilated convolution and a narrow one, beside a shortcut."""
    inner, kernel = width // config.compress, config.residual_kernel_size
    branch = Chain(
        [
            activation(config, weights, f"{name}.block.0"),
            convolution(config, weights, f"{name}.block.1", width, inner, kernel, dilation),
            activation(config, weights, f"{name}.block.2"),
            convolution(config, weights, f"{name}.block.3", inner, width, 1),
        ]
    )
    if not config.use_conv_shortcut:
        return Residual(branch)
    return Residual(branch, convolution(config, weights, f"{name}.shortcut", width, width, 1))


def convolution(
    config: SeanetConfig,
    weights: Weights,
    name: str,
    inputs: int,
    outputs: int,
    kernel: int,
    dilation: int = 1,
) -> Convolution:
    """A convolution that keeps the length."""
    reach = dilation * (kernel - 1)
    return Convolution(
        weights(f"{name}.conv.weight", outputs, inputs, kernel),
        weights(f"{name}.conv.bias", outputs),
        dilation,
        left=reach - (0 if config.use_causal_conv else reach // 2),
        mode=check_pad_mode(config.pad_mode),
    )
