"""Arithmetic of a chain of one-dimensional convolutions: output length and receptive field."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class ConvLayer(NamedTuple):
    """One convolution. Lengths are in samples of its own input and output."""

    kernel: int
    stride: int
    """Outputs per input of a transposed one; 1 of any other."""
    dilation: int
    left: int
    """Samples added in front of the input, or, if transposed, cut off in front of the output."""
    right: int
    """The same behind it."""
    transposed: bool
    reflects: bool = False
    """Whether the signal is mirrored at its edges, instead of silence behind them."""

    @property
    def reach(self) -> int:
        """Inputs from the first to the last that an output reads, or outputs an input writes."""
        return self.dilation * (self.kernel - 1)

    def output_length(self, length: int) -> int:
        """Length of the output."""
        if self.transposed:
            return (length - 1) * self.stride + self.reach + 1 - self.left - self.right
        return length + self.left + self.right - self.reach

    def inputs_of(self, first: int, last: int) -> tuple[int, int]:
        """First and last input index that outputs first .. last read.

        A convolution's output j reads inputs j - left + k * dilation for k = 0 .. kernel - 1. A
        transposed one writes input i to outputs i * stride - left + k * dilation, so output j
        reads the i between (j + left - reach) / stride and (j + left) / stride.
        """
        if self.transposed:
            return (
                -((self.reach - first - self.left) // self.stride),
                (last + self.left) // self.stride,
            )
        return first - self.left, last - self.left + self.reach


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
        hop *= layer.stride
    return hop


def right_context(layers: Sequence[ConvLayer]) -> int:
    """Frames behind a frame on which its samples depend."""
    last = upsampling(layers) - 1
    for layer in reversed(layers):
        _, last = layer.inputs_of(0, last)
    return max(0, last)


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
