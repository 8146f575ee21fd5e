"""Context and length are computed from the decoder's layers and agree with what is measured."""

from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from vocoder_service.codec import load_codec
from vocoder_service.receptive_field import (
    ConvLayer,
    frames_at_start,
    output_length,
    right_context,
    upsampling,
)


def published_dac(ratios: list[int], whole_frames: bool) -> list[ConvLayer]:
    layers = [conv(7, 3)]
    for ratio in ratios:
        padding = -(-ratio // 2)
        layers.append(upsample(ratio, padding, padding - (ratio % 2 if whole_frames else 0)))
        for dilation in (1, 3, 9):
            layers += [conv(7, 3 * dilation, dilation=dilation), conv(1, 0)]
    return [*layers, conv(7, 3)]


@pytest.mark.parametrize(
    ("ratios", "whole_frames", "hop", "missing_samples"),
    [
        pytest.param([8, 5, 4, 2], True, 320, 0, id="xcodec-16k"),
        pytest.param([8, 5, 4, 2], False, 320, 8, id="dac-16k-and-24k"),
        pytest.param([8, 8, 4, 2], False, 512, 0, id="dac-44k"),
    ],
)
def test_published_codecs_need_ten_frames_behind_a_frame(
    ratios: list[int], whole_frames: bool, hop: int, missing_samples: int
) -> None:
    layers = published_dac(ratios, whole_frames)

    assert right_context(layers) == 10
    assert frames_at_start(layers) == 11
    assert upsampling(layers) == hop
    for frames in (1, 2, 50, 1000):
        assert output_length(layers, frames) == hop * frames - missing_samples


@pytest.mark.parametrize("codec_directory", ["xcodec", "dac"], indirect=True)
def test_a_frame_changes_samples_as_far_before_it_as_computed(codec_directory: Path) -> None:
    codec = load_codec(codec_directory, dtype=torch.float64)
    changed = 25
    codes = torch.zeros(1, codec.num_codebooks, 51, dtype=torch.int64)
    other = codes.clone()
    other[:, :, changed] = 7

    samples = (codec.decode(codes) != codec.decode(other))[0].nonzero()[:, 0]

    # Frame f hears right_context frames ahead, so the change is heard that much before it.
    assert samples.min() // codec.hop_length == changed - codec.right_context


@settings(deadline=None)
@given(
    kernel=st.integers(1, 9),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    padding=st.integers(0, 4),
    transposed=st.booleans(),
)
def test_layer_arithmetic_is_that_of_torch(
    kernel: int, stride: int, dilation: int, padding: int, transposed: bool
) -> None:
    module: nn.Conv1d | nn.ConvTranspose1d
    if transposed:
        assume(kernel >= stride and dilation == 1)  # otherwise some outputs read nothing
        module = nn.ConvTranspose1d(1, 1, kernel, stride, padding, bias=False)
        layer = ConvLayer(kernel, stride, 1, padding, padding, transposed=True)
    else:
        module = nn.Conv1d(1, 1, kernel, padding=padding, dilation=dilation, bias=False)
        layer = ConvLayer(kernel, 1, dilation, padding, padding, transposed=False)
    nn.init.ones_(module.weight)
    signal = torch.ones(1, 1, 120, requires_grad=True)
    output = module(signal)
    middle = output.shape[-1] // 2

    output[0, 0, middle : middle + 2].sum().backward()

    assert layer.output_length(120) == output.shape[-1]
    assert signal.grad is not None
    read = signal.grad[0, 0].nonzero()
    assert layer.inputs_of(middle, middle + 1) == (int(read.min()), int(read.max()))


def conv(kernel: int, left: int, dilation: int = 1, reflects: bool = False) -> ConvLayer:
    right = dilation * (kernel - 1) - left
    return ConvLayer(kernel, 1, dilation, left, right, transposed=False, reflects=reflects)


def upsample(stride: int, left: int = 0, right: int = 0) -> ConvLayer:
    return ConvLayer(2 * stride, stride, 1, left, right, transposed=True)


def test_a_mirrored_start_needs_the_frames_that_are_mirrored() -> None:
    assert frames_at_start([conv(7, 6)]) == 1
    assert frames_at_start([conv(7, 6, reflects=True)]) == 7
    assert frames_at_start([conv(7, 3)]) == 4
    assert frames_at_start([conv(7, 3, reflects=True)]) == 4
    # Behind an upsampling a mirrored sample is in the first frame.
    assert frames_at_start([upsample(8), conv(7, 6, reflects=True)]) == 1
    assert frames_at_start([upsample(4), conv(7, 6, reflects=True)]) == 2
