"""SEANet's encoder, whole clips at a time; its decoder is in ``seanet``."""

from collections.abc import Callable

import torch
from torch.nn import functional

from vocoder_service.checkpoint import Weights
from vocoder_service.seanet import SeanetConfig, activation, convolution, residual, residual_lstm
from vocoder_service.streaming import Layer

Step = Callable[[torch.Tensor], torch.Tensor]


def seanet_encoder(config: SeanetConfig, weights: Weights, prefix: str) -> list[Step]:
    """The steps from audio, [batch, samples, 1], to [batch, frames, hidden_size].

    The samples must be whole frames.

    Args:
        prefix: of the names of the weights, which number the steps as published.

    Raises:
        RuntimeError: the weights do not fit the configuration.
    """
    width = config.num_filters
    steps: list[Step] = []

    def name() -> str:
        """Of the next step."""
        return f"{prefix}{len(steps)}"

    steps.append(_whole(convolution(config, weights, name(), 1, width, config.kernel_size)))
    for ratio in reversed(config.upsampling_ratios):
        for index in range(config.num_residual_layers):
            dilation = config.dilation_growth_rate**index
            steps.append(_whole(residual(config, weights, name(), width, dilation)))
        steps.append(_whole(activation(config, weights, name())))
        steps.append(_downsampling(config, weights, name(), width, ratio))
        width *= 2
    if config.num_lstm_layers:
        steps.append(_whole(residual_lstm(config, weights, name(), width)))
    steps.append(_whole(activation(config, weights, name())))
    last = config.last_kernel_size
    steps.append(_whole(convolution(config, weights, name(), width, config.hidden_size, last)))
    weights.check_all_taken(prefix)
    return steps


def _whole(layer: Layer) -> Step:
    return lambda signal: layer.advance(signal, None, last=True)[0]


def _downsampling(
    config: SeanetConfig, weights: Weights, name: str, width: int, stride: int
) -> Step:
    """A convolution that makes one output of ``stride`` inputs, and doubles the channels."""
    kernel = 2 * stride
    weight = weights(f"{name}.conv.weight", 2 * width, width, kernel)
    bias = weights(f"{name}.conv.bias", 2 * width)
    excess = kernel - stride
    right = 0 if config.use_causal_conv else excess // 2
    mode = config.pad_mode

    def step(signal: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(signal.transpose(1, 2), (excess - right, right), mode)
        return functional.conv1d(padded, weight, bias, stride=stride).transpose(1, 2)

    return step
