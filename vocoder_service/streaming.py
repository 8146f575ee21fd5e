"""Decoders that are given their frames piece by piece and read each of them once.

A layer keeps of every stream what its next outputs need of the inputs it has had: a convolution
the last few, a residual the samples its branch is behind. So a piece passes every layer once, and
comes out as far as it is determined by then. Only at the true start and end of a stream does a
layer put its padding around its input, as it would around the whole: the pieces, joined, are what
the whole signal would become at once.

Signals are [batch, time, channels], which is how convolutions and activations are fastest on CPUs.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

import torch
from torch import nn

from vocoder_service.receptive_field import ConvLayer

State: TypeAlias = torch.Tensor | tuple["State", ...]
"""What a layer remembers; the first dimension of every tensor is the batch."""

PadMode = Literal["constant", "reflect", "replicate"]
"""What is beyond the edges of a signal: silence, its mirror image, or its outermost sample."""


class Layer(Protocol):
    """One step of a decoder. It has no state of its own."""

    @property
    def convolutions(self) -> Sequence[ConvLayer]:
        """For the arithmetic of lengths: those in it, in order."""

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """Reads on.

        Args:
            signal: the next piece of every stream of the batch, [batch, time, channels]; time may
                be 0 behind the start. The first piece must determine at least one sample of the
                decoder, unless it is also the last.
            before: what is remembered of the pieces before; None: there were none.
            last: whether the streams end with this piece.

        Returns:
            What is now determined of the output, and what to remember. Neither the signal nor
            ``before`` is changed; the new state may share memory with the signal.
        """


class Pointwise:
    """A function of each moment by itself."""

    convolutions: Sequence[ConvLayer] = ()

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._function = function

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        return self._function(signal), ()


class Convolution:
    """A convolution that keeps the length. Remembers its last inputs."""

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        dilation: int,
        left: int,
        mode: PadMode = "constant",
    ) -> None:
        """
        Args:
            weight: [outputs, inputs, kernel].
            left: samples of padding in front; the rest of what the kernel needs is behind.

        Raises:
            ValueError: more would be behind than in front.
        """
        self._weight, self._bias, self._mode = _channels_last(weight), bias, mode
        kernel = weight.shape[2]
        right = dilation * (kernel - 1) - left
        if not 0 <= right <= left:  # what is remembered must be enough to mirror the end
            raise ValueError(f"a convolution cannot be padded by {left} and {right} samples")
        self._layer = ConvLayer(
            kernel=kernel,
            stride=1,
            dilation=dilation,
            left=left,
            right=right,
            transposed=False,
            reflects=mode == "reflect",
        )

    @property
    def convolutions(self) -> Sequence[ConvLayer]:
        return [self._layer]

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        layer = self._layer
        joined = _joined(signal, before, layer.left, layer.right if last else 0, self._mode)
        made = _convolved(joined, self._weight, self._bias, layer.dilation)
        return made, _tail(joined, layer.reach)


class Upsampling:
    """A transposed convolution that makes ``stride`` samples of one.

    It is computed as a convolution at the rate of its input that makes ``stride`` outputs at once:
    nothing is then added up across pieces, and it is twice as fast on CPUs.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        stride: int,
        left: int,
        right: int,
        depthwise: bool = False,
    ) -> None:
        """
        Args:
            weight: [inputs, outputs, kernel], as of torch.nn.ConvTranspose1d; if depthwise,
                [channels, 1, kernel].
            left, right: samples that are cut off the output at the start and the end.

        Raises:
            ValueError: more is cut off at the start than the first input makes for good.
        """
        kernel = weight.shape[2]
        if left > stride:
            raise ValueError(f"an upsampling by {stride} cannot lose its first {left} samples")
        taps = -(-kernel // stride)
        padded = nn.functional.pad(weight, (0, taps * stride - kernel))
        # Output ``phase`` of an input reads the inputs before it with the later taps.
        phases = padded.unflatten(2, (taps, stride)).flip(2)
        self._depthwise = depthwise
        self._stride = stride
        self._groups = len(weight) if depthwise else 1
        if depthwise:  # [channels * stride, 1, taps]
            arranged = phases[:, 0].transpose(1, 2).flatten(0, 1)[:, None]
        else:  # [stride * outputs, inputs, taps]
            arranged = phases.permute(3, 1, 0, 2).flatten(0, 1)
        self._weight = _channels_last(arranged)
        self._bias = bias
        self._tap_bias = None
        if bias is not None:
            self._tap_bias = bias.repeat_interleave(stride) if depthwise else bias.repeat(stride)
        self._layer = ConvLayer(kernel, stride, 1, left, right, transposed=True)
        self._reach = taps - 1
        self._excess = right + taps * stride - kernel

    @property
    def convolutions(self) -> Sequence[ConvLayer]:
        return [self._layer]

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        joined = _joined(signal, before, self._reach, self._reach if last else 0, "constant")
        made = _convolved(joined, self._weight, self._tap_bias, 1, self._groups)
        if self._depthwise:
            made = made.unflatten(2, (-1, self._stride)).transpose(2, 3)
        else:
            made = made.unflatten(2, (self._stride, -1))
        made = made.flatten(1, 2)
        begin = self._layer.left if before is None else 0
        end = made.shape[1] - (self._excess if last else 0)
        return made[:, begin:end], _tail(joined, self._reach)


class Residual:
    """A branch added to the signal beside it. Remembers what the branch has not come to yet."""

    def __init__(self, branch: Layer, shortcut: Layer | None = None) -> None:
        """
        Args:
            branch: keeps the length.
            shortcut: what the signal passes meanwhile, moment by moment.
        """
        self._branch = branch
        self._shortcut = shortcut

    @property
    def convolutions(self) -> Sequence[ConvLayer]:
        """The shortcut hears nothing that the branch does not."""
        return self._branch.convolutions

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        branch, waiting = (None, None) if before is None else before
        assert waiting is None or isinstance(waiting, torch.Tensor)
        made, after = self._branch.advance(signal, branch, last)
        beside = signal
        if self._shortcut is not None:
            beside, _ = self._shortcut.advance(signal, None, last)
        length = made.shape[1]
        if waiting is None or waiting.shape[1] == 0:
            return made.add_(beside[:, :length]), (after, beside[:, length:])
        early = waiting.shape[1]
        if length < early:
            beside, early = torch.cat([waiting, beside], dim=1), 0
        else:
            made[:, :early].add_(waiting)
        made[:, early:].add_(beside[:, : length - early])
        return made, (after, beside[:, length - early :])


class Chain:
    """Layers one after the other."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers

    @property
    def convolutions(self) -> Sequence[ConvLayer]:
        return [conv for layer in self._layers for conv in layer.convolutions]

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        afters = []
        for index, layer in enumerate(self._layers):
            known = None if before is None else before[index]
            signal, after = layer.advance(signal, known, last)
            afters.append(after)
        return signal, tuple(afters)


def check_pad_mode(mode: str) -> PadMode:
    """
    Raises:
        ValueError: it is not known.
    """
    for known in get_args(PadMode):
        if mode == known:
            return known
    raise ValueError(f"padding {mode!r} is not known to this decoder")


def _channels_last(weight: torch.Tensor) -> torch.Tensor:
    """[outputs, inputs, kernel] as [outputs, inputs, 1, kernel], in the layout of the signals."""
    return weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)


def _convolved(
    joined: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    dilation: int,
    groups: int = 1,
) -> torch.Tensor:
    """What follows from ``joined`` without anything around it."""
    reach = dilation * (weight.shape[3] - 1)
    if joined.shape[1] <= reach:
        return joined.new_empty(len(joined), 0, len(weight))
    image = joined.transpose(1, 2).unsqueeze(2)
    made = nn.functional.conv2d(image, weight, bias, dilation=(1, dilation), groups=groups)
    return made.squeeze(2).transpose(1, 2)


def _tail(joined: torch.Tensor, length: int) -> State:
    return joined[:, max(0, joined.shape[1] - length) :]


def _joined(
    signal: torch.Tensor, before: State | None, left: int, right: int, mode: PadMode
) -> torch.Tensor:
    """The signal with what is remembered, or the padding of the start, in front of it.

    Args:
        left: padding of the start.
        right: padding of the end; 0 if this is not the end.
    """
    missing = 0
    if before is not None:
        assert isinstance(before, torch.Tensor)
        parts = [before, signal]
    else:
        if mode == "reflect":
            # Too short a signal has silence behind it, as far as it must be reflected.
            missing = max(0, max(left, right) + 1 - signal.shape[1])
            signal = nn.functional.pad(signal, (0, 0, 0, missing))
        parts = [_in_front(signal, left, mode), signal]
    joined = torch.cat(parts, dim=1) if parts[0].shape[1] else signal
    if right:
        joined = torch.cat([joined, _behind(joined, right, mode)], dim=1)
    return joined[:, : joined.shape[1] - missing]


def _in_front(signal: torch.Tensor, length: int, mode: PadMode) -> torch.Tensor:
    if mode == "reflect":
        return signal[:, 1 : length + 1].flip(1)
    if mode == "replicate":
        return signal[:, :1].expand(-1, length, -1)
    return signal.new_zeros(len(signal), length, signal.shape[2])


def _behind(signal: torch.Tensor, length: int, mode: PadMode) -> torch.Tensor:
    if mode == "reflect":
        return signal[:, -length - 1 : -1].flip(1)
    if mode == "replicate":
        return signal[:, -1:].expand(-1, length, -1)
    return signal.new_zeros(len(signal), length, signal.shape[2])
