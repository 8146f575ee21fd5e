"""Arithmetic of a chain of one-dimensional convolutions: output length and receptive field."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torch import nn


class ConvLayer(NamedTuple):
    """One convolution. Lengths are in samples of its own input and output."""

    kernel: int
    stride: int
    dilation: int
    padding: int
    output_padding: int
    transposed: bool
    reflects: bool = False
    """Whether the signal is mirrored at its edges, instead of silence behind them."""

    def output_length(self, length: int) -> int:
        """Length of the output, by the formulas of torch.nn.Conv1d and ConvTranspose1d."""
        reach = self.dilation * (self.kernel - 1)
        if self.transposed:
            return (length - 1) * self.stride - 2 * self.padding + reach + self.output_padding + 1
        return (length + 2 * self.padding - reach - 1) // self.stride + 1

    def inputs_of(self, first: int, last: int) -> tuple[int, int]:
        """First and last input index that outputs first .. last read.

        A convolution's output j reads inputs j * stride - padding + k * dilation for
        k = 0 .. kernel - 1. A transposed one writes input i to outputs
        i * stride - padding + k * dilation, so output j reads the i between
        (j + padding - reach) / stride and (j + padding) / stride.
        """
        reach = self.dilation * (self.kernel - 1)
        if self.transposed:
            return (
                -((reach - first - self.padding) // self.stride),
                (last + self.padding) // self.stride,
            )
        return first * self.stride - self.padding, last * self.stride - self.padding + reach


def conv_layers(decoder: nn.Module) -> list[ConvLayer]:
    """The convolutions of ``decoder`` in the order in which they were defined.

    That is the order of execution in the decoders used here. A residual branch counts as if its
    skip connection were absent, which is right as long as the branch itself is centred.
    """
    return [
        ConvLayer(
            kernel=module.kernel_size[0],
            stride=module.stride[0],
            dilation=module.dilation[0],
            padding=int(module.padding[0]),
            output_padding=module.output_padding[0],
            transposed=isinstance(module, nn.ConvTranspose1d),
        )
        for module in decoder.modules()
        if isinstance(module, nn.Conv1d | nn.ConvTranspose1d)
    ]


def output_length(layers: Iterable[ConvLayer], frames: int) -> int:
    """Samples that the chain makes of ``frames`` frames."""
    length = frames
    for layer in layers:
        length = layer.output_length(length)
    return length


def upsampling(layers: Iterable[ConvLayer]) -> int:
    """Samples per frame of a chain of upsampling layers."""
    hop = 1
    for layer in layers:
        hop *= layer.stride if layer.transposed else 1
    return hop


def context_frames(layers: Sequence[ConvLayer], per_frame: int = 1) -> tuple[int, int]:
    """Frames to the left and to the right of a frame on which its samples depend.

    Walks the samples of frame 0 back through the layers. Everything in between is covered too: an
    inner value that these samples read depends on no frame outside the result, so a window with
    this much context has no padded edge in any value that reaches its body.

    Args:
        per_frame: inputs of the first layer per frame.
    """
    first, last = 0, upsampling(layers) * per_frame - 1
    for layer in reversed(layers):
        first, last = layer.inputs_of(first, last)
    beyond = last - (per_frame - 1)
    return max(0, -(first // per_frame)), max(0, -(-beyond // per_frame))


def frames_at_start(layers: Sequence[ConvLayer]) -> int:
    """Frames that must be known before the first frame of a stream can be decoded.

    That is one and the right context, or more where a layer mirrors what follows the start.
    """
    first, last = 0, upsampling(layers) - 1
    for layer in reversed(layers):
        first, last = layer.inputs_of(first, last)
        if layer.reflects:
            last = max(last, -first)
        first = max(0, first)
    return last + 1
