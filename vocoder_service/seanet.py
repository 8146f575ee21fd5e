"""SEANet's decoder, which EnCodec, Mimi and ESPnet's codecs share.

Layers have the numbers and names of the published implementations, so that their checkpoints fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import torch
from torch import nn
from torch.nn import functional

from vocoder_service.lstm import ResidualLstm
from vocoder_service.receptive_field import ConvLayer


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
        if self.pad_mode not in ("constant", "reflect", "replicate"):
            raise ValueError(f"padding {self.pad_mode!r} is not known to this decoder")


class Snake(nn.Module):
    """A steady slope with ripples."""

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return signal + torch.sin(signal).square()


class PaddedConv(nn.Module):
    """A convolution that keeps the length."""

    def __init__(
        self, config: SeanetConfig, inputs: int, outputs: int, kernel: int, dilation: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)
        reach = dilation * (kernel - 1)
        right = 0 if config.use_causal_conv else reach // 2
        self._padding = (reach - right, right)
        self._mode = config.pad_mode

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, inputs, n] to [batch, outputs, n]."""
        length, missing = signal.shape[-1], 0
        if self._mode == "reflect":
            # Too short a signal has silence behind it, as far as it must be reflected.
            missing = max(0, max(self._padding) + 1 - length)
            signal = functional.pad(signal, (0, missing))
        signal = functional.pad(signal, self._padding, self._mode)
        result: torch.Tensor = self.conv(signal[..., : signal.shape[-1] - missing])
        return result

    @property
    def layer(self) -> ConvLayer:
        """For the arithmetic of windows."""
        return ConvLayer(
            kernel=self.conv.kernel_size[0],
            stride=1,
            dilation=self.conv.dilation[0],
            padding=self._padding[0],
            output_padding=0,
            transposed=False,
            reflects=self._mode == "reflect",
        )


class Upsampling(nn.Module):
    """A transposed convolution that makes ``stride`` samples of one."""

    def __init__(
        self,
        config: SeanetConfig,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride, groups=groups, bias=bias)
        excess = kernel - stride
        self._right = ceil(excess * config.trim_right_ratio)
        if not config.use_causal_conv:
            self._right = excess // 2
        self._left = excess - self._right

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, inputs, n] to [batch, outputs, stride * n]."""
        result: torch.Tensor = self.conv(signal)
        return result[..., self._left : result.shape[-1] - self._right]

    @property
    def layer(self) -> ConvLayer:
        """For the arithmetic of windows."""
        return ConvLayer(
            kernel=self.conv.kernel_size[0],
            stride=self.conv.stride[0],
            dilation=1,
            padding=self._left,
            output_padding=0,
            transposed=True,
        )


class Residual(nn.Module):
    """A branch of two convolutions beside the signal."""

    def __init__(self, config: SeanetConfig, width: int, dilation: int) -> None:
        super().__init__()
        inner = width // config.compress
        self.block = nn.Sequential(
            _activation(config),
            PaddedConv(config, width, inner, config.residual_kernel_size, dilation),
            _activation(config),
            PaddedConv(config, inner, width, 1),
        )
        self.shortcut: nn.Module = nn.Identity()
        if config.use_conv_shortcut:
            self.shortcut = PaddedConv(config, width, width, 1)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, width, n], as it comes."""
        result: torch.Tensor = self.shortcut(signal) + self.block(signal)
        return result


def seanet_decoder(config: SeanetConfig) -> nn.Sequential:
    """The decoder's layers, numbered as published; an LSTM, if there is one, is layer 1."""
    width = config.num_filters * 2 ** len(config.upsampling_ratios)
    layers: list[nn.Module] = [PaddedConv(config, config.hidden_size, width, config.kernel_size)]
    if config.num_lstm_layers:
        layers.append(ResidualLstm(width, config.num_lstm_layers))
    for ratio in config.upsampling_ratios:
        layers += [_activation(config), Upsampling(config, width, width // 2, 2 * ratio, ratio)]
        width //= 2
        for index in range(config.num_residual_layers):
            layers.append(Residual(config, width, config.dilation_growth_rate**index))
    layers += [_activation(config), PaddedConv(config, width, 1, config.last_kernel_size)]
    return nn.Sequential(*layers)


def _activation(config: SeanetConfig) -> nn.Module:
    return Snake() if config.snake else nn.ELU()


def seanet_layers(part: nn.Module) -> list[ConvLayer]:
    """The convolutions of ``part`` in order.

    Both ways through a residual are counted one after the other, which reaches as far as its
    longer one, since the other only reads the very sample.
    """
    return [
        module.layer for module in part.modules() if isinstance(module, PaddedConv | Upsampling)
    ]
