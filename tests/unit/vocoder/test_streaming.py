"""Layers that are given a signal in pieces make of it what torch makes of it at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from vocoder_service.activations import Snake
from vocoder_service.kept import stacked, unstacked
from vocoder_service.receptive_field import frames_at_start, output_length
from vocoder_service.streaming import (
    Chain,
    Convolution,
    Layer,
    PadMode,
    Residual,
    Upsampling,
    check_pad_mode,
)

WIDTH = 3
Whole = Callable[[torch.Tensor], torch.Tensor]
"""A layer of whole signals, [batch, channels, time]."""


@dataclass(frozen=True)
class Twin:
    """A layer, and the same in plain torch."""

    layer: Layer
    whole: Whole


def convolution(kernel: int, dilation: int, left: int, mode: PadMode, seed: int) -> Twin:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(WIDTH, WIDTH, kernel, generator=generator) / (WIDTH * kernel) ** 0.5
    bias = torch.randn(WIDTH, generator=generator)
    right = dilation * (kernel - 1) - left

    def whole(signal: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(signal, (left, right), mode)
        return functional.conv1d(padded, weight, bias, dilation=dilation)

    return Twin(Convolution(weight, bias, dilation, left, mode), whole)


def upsampling(stride: int, excess: int, left: int, depthwise: bool, seed: int) -> Twin:
    generator = torch.Generator().manual_seed(seed)
    outputs = 1 if depthwise else WIDTH
    weight = torch.randn(WIDTH, outputs, stride + excess, generator=generator) / WIDTH**0.5
    bias = torch.randn(WIDTH, generator=generator)
    right = excess - left

    def whole(signal: torch.Tensor) -> torch.Tensor:
        groups = WIDTH if depthwise else 1
        made = functional.conv_transpose1d(signal, weight, bias, stride, groups=groups)
        return made[..., left : made.shape[-1] - right]

    return Twin(Upsampling(weight, bias, stride, left, right, depthwise), whole)


def residual(branch: Twin, shortcut: Twin | None) -> Twin:
    def whole(signal: torch.Tensor) -> torch.Tensor:
        return branch.whole(signal) + (signal if shortcut is None else shortcut.whole(signal))

    return Twin(Residual(branch.layer, None if shortcut is None else shortcut.layer), whole)


def chain(twins: Sequence[Twin]) -> Twin:
    def whole(signal: torch.Tensor) -> torch.Tensor:
        for twin in twins:
            signal = twin.whole(signal)
        return signal

    return Twin(Chain([twin.layer for twin in twins]), whole)


def snake(seed: int) -> Twin:
    slopes = torch.rand(WIDTH, generator=torch.Generator().manual_seed(seed)) + 0.5

    def whole(signal: torch.Tensor) -> torch.Tensor:
        slope = slopes[:, None]
        return signal + torch.sin(slope * signal).square() / slope

    return Twin(Snake(slopes), whole)


@st.composite
def convolutions(draw: st.DrawFn) -> Twin:
    kernel, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    reach = dilation * (kernel - 1)
    left = draw(st.integers((reach + 1) // 2, reach))
    mode: PadMode = draw(st.sampled_from(get_args(PadMode)))
    return convolution(kernel, dilation, left, mode, draw(st.integers(0, 99)))


@st.composite
def upsamplings(draw: st.DrawFn) -> Twin:
    stride = draw(st.integers(1, 4))
    excess = draw(st.integers(0, 2 * stride))
    left = draw(st.integers(0, min(stride, excess)))
    return upsampling(stride, excess, left, draw(st.booleans()), draw(st.integers(0, 99)))


@st.composite
def residuals(draw: st.DrawFn) -> Twin:
    parts = [snake(1), draw(convolutions()), snake(2), draw(convolutions())]
    shortcut = convolution(1, 1, 0, "constant", seed=5) if draw(st.booleans()) else None
    return residual(chain(parts), shortcut)


decoders = st.lists(convolutions() | upsamplings() | residuals(), min_size=1, max_size=4).map(chain)


def in_pieces(layer: Layer, signal: torch.Tensor, cuts: list[int]) -> torch.Tensor:
    """Of ``signal`` [batch, channels, time], cut before each of ``cuts``."""
    parts, state = [], None
    bounds = [0, *cuts, signal.shape[-1]]
    for begin, end in pairwise(bounds):
        piece = signal[..., begin:end].transpose(1, 2)
        made, state = layer.advance(piece.contiguous(), state, last=False)
        parts.append(made)
    made, _ = layer.advance(signal[..., :0].transpose(1, 2), state, last=True)
    return torch.cat([*parts, made], dim=1).transpose(1, 2)


def a_signal(batch: int, length: int) -> torch.Tensor:
    return torch.randn(batch, WIDTH, length, generator=torch.Generator().manual_seed(length))


@settings(deadline=None, max_examples=150)
@given(twin=decoders, more=st.integers(0, 20), cuts=st.sets(st.integers(0, 20), max_size=5))
def test_any_cut_of_a_signal_makes_the_same(twin: Twin, more: int, cuts: set[int]) -> None:
    layers = twin.layer.convolutions
    least = max(30, frames_at_start(layers))
    signal = a_signal(2, least + more)

    made = in_pieces(twin.layer, signal, [least + cut for cut in sorted(cuts) if cut <= more])

    expected = twin.whole(signal)
    assert expected.shape[-1] == output_length(layers, signal.shape[-1])
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=50)
@given(twin=decoders, length=st.integers(40, 60))
def test_a_whole_signal_needs_no_pieces(twin: Twin, length: int) -> None:
    signal = a_signal(2, length)
    made, _ = twin.layer.advance(signal.transpose(1, 2).contiguous(), None, last=True)
    torch.testing.assert_close(made.transpose(1, 2), twin.whole(signal), rtol=1e-4, atol=1e-4)


def a_decoder() -> Twin:
    branch = chain([snake(1), convolution(7, 3, 9, "constant", seed=1), snake(2)])
    return chain([upsampling(4, 4, 2, False, seed=2), residual(branch, None)])


def test_a_piece_makes_as_much_as_it_has_frames() -> None:
    layer = a_decoder().layer
    first, state = layer.advance(a_signal(1, 10).transpose(1, 2), None, last=False)
    assert 0 < first.shape[1] < 4 * 10
    for length in (1, 3, 8):
        made, state = layer.advance(a_signal(1, length).transpose(1, 2), state, last=False)
        assert made.shape[1] == 4 * length


def test_what_is_remembered_does_not_grow() -> None:
    layer = a_decoder().layer
    sizes = set()
    state = None
    for length in (30, 1, 200, 5):
        _, state = layer.advance(a_signal(1, length).transpose(1, 2), state, last=False)
        (kept,) = unstacked(state, 1)
        sizes.add(kept.bytes)
        state = stacked([kept])
    assert len(sizes) == 1


def test_streams_of_a_batch_keep_their_own_states() -> None:
    twin = a_decoder()
    signal = a_signal(3, 40)
    early, late = signal[..., :25].transpose(1, 2), signal[..., 25:].transpose(1, 2)
    singles = [twin.layer.advance(early[row : row + 1], None, last=False) for row in range(3)]

    made, _ = twin.layer.advance(
        late, stacked([unstacked(state, 1)[0] for _, state in singles]), last=True
    )

    joined = torch.cat([torch.cat([part for part, _ in singles]), made], dim=1)
    torch.testing.assert_close(joined.transpose(1, 2), twin.whole(signal), rtol=1e-4, atol=1e-4)


def test_advancing_changes_no_state_and_no_signal() -> None:
    layer = a_decoder().layer
    signal = a_signal(1, 20).transpose(1, 2)
    _, state = layer.advance(signal, None, last=False)
    state = stacked(unstacked(state, 1))
    kept = signal.clone()
    one, _ = layer.advance(signal, state, last=False)
    other, _ = layer.advance(signal, state, last=False)
    assert torch.equal(one, other)
    assert torch.equal(signal, kept)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_snake_is_exact(scale: float, dtype: torch.dtype) -> None:
    signal = scale * torch.randn(1, 5000, WIDTH, generator=torch.Generator().manual_seed(0))
    slopes = torch.tensor([0.1, 1.0, 3.0])
    made, _ = Snake(slopes.to(dtype)).advance(signal.to(dtype), None, last=False)
    exact, slope = signal.double(), slopes.double()
    expected = exact + torch.sin(slope * exact).square() / slope
    torch.testing.assert_close(made.double(), expected, rtol=1e-6, atol=3e-6 * max(1.0, scale))


def test_a_way_of_padding_that_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="'circular' is not known"):
        check_pad_mode("circular")


@pytest.mark.parametrize("left", [1, 5])
def test_a_convolution_with_more_padding_behind_than_in_front_is_refused(left: int) -> None:
    with pytest.raises(ValueError, match=f"padded by {left} and {4 - left}"):
        Convolution(torch.ones(1, 1, 5), None, 1, left)


def test_an_upsampling_that_loses_more_than_its_first_input_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot lose its first 3 samples"):
        upsampling(2, 4, 3, depthwise=False, seed=0)
