"""Context and length are computed from the decoder's layers and agree with what is measured."""

from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import (
    DacConfig,
    DacModel,
    PretrainedConfig,
    PreTrainedModel,
    XcodecConfig,
    XcodecModel,
)

from vocoder_service.codec import load_codec
from vocoder_service.receptive_field import (
    ConvLayer,
    context_frames,
    conv_layers,
    frames_at_start,
    output_length,
    upsampling,
)


def decoder_of(model_class: type[PreTrainedModel], config: PretrainedConfig) -> nn.Module:
    with torch.device("meta"):
        model = model_class(config)
    decoder: nn.Module = getattr(model, "acoustic_decoder", None) or model.decoder
    return decoder


@pytest.mark.parametrize(
    ("model_class", "config", "hop", "missing_samples"),
    [
        pytest.param(XcodecModel, XcodecConfig(), 320, 0, id="xcodec-16k"),
        pytest.param(
            DacModel, DacConfig(downsampling_ratios=[2, 4, 5, 8]), 320, 8, id="dac-16k-and-24k"
        ),
        pytest.param(DacModel, DacConfig(downsampling_ratios=[2, 4, 8, 8]), 512, 0, id="dac-44k"),
    ],
)
def test_published_codecs_need_ten_frames_on_each_side(
    model_class: type[PreTrainedModel], config: PretrainedConfig, hop: int, missing_samples: int
) -> None:
    layers = conv_layers(decoder_of(model_class, config))

    assert context_frames(layers) == (10, 10)
    assert upsampling(layers) == hop
    for frames in (1, 2, 50, 1000):
        assert output_length(layers, frames) == hop * frames - missing_samples


@pytest.mark.parametrize("codec_directory", ["xcodec", "dac"], indirect=True)
def test_a_frame_changes_samples_up_to_the_computed_context_and_no_further(
    codec_directory: Path,
) -> None:
    codec = load_codec(codec_directory, dtype=torch.float64)
    changed = 25
    codes = torch.zeros(1, codec.num_codebooks, 51, dtype=torch.int64)
    other = codes.clone()
    other[:, :, changed] = 7

    samples = (codec.decode(codes) != codec.decode(other))[0].nonzero()[:, 0]
    frames = samples // codec.hop_length

    # Frame f hears right_context frames ahead, so the change is heard that much before it.
    assert frames.min() == changed - codec.right_context
    assert frames.max() == changed + codec.left_context


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
    if transposed:
        assume(kernel >= stride and dilation == 1)  # otherwise some outputs read nothing
    make = nn.ConvTranspose1d if transposed else nn.Conv1d
    module = make(1, 1, kernel, stride=stride, dilation=dilation, padding=padding, bias=False)
    nn.init.ones_(module.weight)
    (layer,) = conv_layers(module)
    signal = torch.ones(1, 1, 120, requires_grad=True)
    output = module(signal)
    middle = output.shape[-1] // 2

    output[0, 0, middle : middle + 2].sum().backward()

    assert layer.output_length(120) == output.shape[-1]
    assert signal.grad is not None
    read = signal.grad[0, 0].nonzero()
    assert layer.inputs_of(middle, middle + 1) == (int(read.min()), int(read.max()))


def conv(kernel: int, left: int, reflects: bool = False) -> ConvLayer:
    return ConvLayer(kernel, 1, 1, left, 0, transposed=False, reflects=reflects)


def upsample(stride: int) -> ConvLayer:
    return ConvLayer(2 * stride, stride, 1, 0, 0, transposed=True)


def test_a_mirrored_start_needs_the_frames_that_are_mirrored() -> None:
    assert frames_at_start([conv(7, 6)]) == 1
    assert frames_at_start([conv(7, 6, reflects=True)]) == 7
    assert frames_at_start([conv(7, 3)]) == 4
    assert frames_at_start([conv(7, 3, reflects=True)]) == 4
    # Behind an upsampling a mirrored sample is in the first frame.
    assert frames_at_start([upsample(8), conv(7, 6, reflects=True)]) == 1
    assert frames_at_start([upsample(4), conv(7, 6, reflects=True)]) == 2


def test_context_is_in_frames_where_a_part_reads_several_values_of_each() -> None:
    assert context_frames([conv(7, 6)], per_frame=2) == (3, 0)
    assert context_frames([conv(7, 3)], per_frame=2) == (2, 2)
    assert context_frames([conv(4, 3)], per_frame=3) == (1, 0)
