"""A loaded codec decodes as the transformers model does, up to rounding, from fewer weights."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import DacModel, EncodecModel, MimiModel, XcodecModel

from vocoder_service.codec import Codec, load_codec

DECODING_PARTS = {
    "dac": ("quantizer", "decoder."),
    "encodec": ("quantizer", "decoder."),
    "mimi": ("quantizer", "upsample", "decoder_transformer", "decoder."),
    "xcodec": ("quantizer", "fc2", "acoustic_decoder"),
}

# The sums are those of transformers in another order. A step of 16-bit PCM is three times as much.
ROUNDING = 1e-5


def random_codes(codec: Codec, batch: int, frames: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (batch, codec.num_codebooks, frames)
    return torch.randint(codec.codebook_size, shape, generator=generator)


def copy_checkpoint(source: Path, target: Path, parts: tuple[str, ...]) -> None:
    """A checkpoint with only the tensors under ``parts``."""
    (target / "config.json").write_text((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if name.startswith(parts)}
    save_file(kept, target / "model.safetensors")


def test_xcodec_describes_itself(xcodec: Codec) -> None:
    assert (xcodec.sample_rate, xcodec.hop_length) == (16000, 320)
    assert (xcodec.num_codebooks, xcodec.codebook_size) == (8, 1024)
    assert (xcodec.right_context, xcodec.first_frames) == (10, 11)


def test_dac_describes_itself(dac: Codec) -> None:
    assert (dac.sample_rate, dac.hop_length) == (16000, 320)
    assert (dac.num_codebooks, dac.codebook_size) == (12, 256)
    assert (dac.right_context, dac.first_frames) == (10, 11)


def test_xcodec_decodes_as_transformers_does(xcodec: Codec, xcodec_directory: Path) -> None:
    codes = random_codes(xcodec, 3, 30)
    model = XcodecModel.from_pretrained(xcodec_directory).eval()
    expected = model.decode(codes).audio_values[:, 0].detach()
    assert torch.allclose(xcodec.decode(codes), expected, rtol=0, atol=ROUNDING)


def test_the_dac_of_44_khz_describes_itself(dac_44: Codec) -> None:
    assert (dac_44.sample_rate, dac_44.hop_length) == (44_100, 512)
    assert (dac_44.num_codebooks, dac_44.codebook_size) == (9, 256)


@pytest.mark.parametrize("name", ["dac", "dac_44"])
def test_dac_decodes_as_transformers_does(name: str, request: pytest.FixtureRequest) -> None:
    codec: Codec = request.getfixturevalue(name)
    codes = random_codes(codec, 3, 30)
    model = DacModel.from_pretrained(request.getfixturevalue(f"{name}_directory")).eval()
    expected = model.decode(audio_codes=codes).audio_values.detach()
    assert torch.allclose(codec.decode(codes), expected, rtol=0, atol=ROUNDING)


def test_encodec_describes_itself(encodec: Codec, acausal: Codec) -> None:
    assert (encodec.sample_rate, encodec.hop_length) == (24000, 320)
    assert (encodec.num_codebooks, encodec.codebook_size) == (8, 256)
    assert (encodec.right_context, encodec.first_frames) == (0, 7)
    assert (acausal.right_context, acausal.first_frames) == (4, 5)


@pytest.mark.parametrize("frames", [1, 2, 3, 6, 7, 30])
@pytest.mark.parametrize("name", ["encodec", "acausal"])
def test_encodec_decodes_as_transformers_does(
    name: str, frames: int, request: pytest.FixtureRequest
) -> None:
    codec: Codec = request.getfixturevalue(name)
    model = EncodecModel.from_pretrained(request.getfixturevalue(f"{name}_directory")).eval()
    codes = random_codes(codec, 3, frames)
    expected = model.decode(codes[None], audio_scales=[None]).audio_values[:, 0].detach()
    assert torch.allclose(codec.decode(codes), expected, rtol=0, atol=ROUNDING)


def test_mimi_describes_itself(mimi: Codec) -> None:
    assert (mimi.sample_rate, mimi.hop_length) == (24000, 1920)
    assert (mimi.num_codebooks, mimi.codebook_size) == (8, 256)
    assert (mimi.right_context, mimi.first_frames) == (0, 1)


@pytest.mark.parametrize("frames", [1, 2, 60])
def test_mimi_decodes_as_transformers_does(mimi: Codec, mimi_directory: Path, frames: int) -> None:
    model = MimiModel.from_pretrained(mimi_directory).eval()
    codes = random_codes(mimi, 3, frames)
    expected = model.decode(codes).audio_values[:, 0].detach()
    assert torch.allclose(mimi.decode(codes), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_mimi_decodes_its_first_codebooks_as_transformers_does(
    mimi_directory: Path, number: int
) -> None:
    """The first alone is the semantic one."""
    model = MimiModel.from_pretrained(mimi_directory).eval()
    codec = load_codec(mimi_directory, num_codebooks=number)
    codes = random_codes(codec, 2, 20)
    expected = model.decode(codes).audio_values[:, 0].detach()
    assert torch.allclose(codec.decode(codes), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    "change", [{"hidden_act": "relu"}, {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}]
)
def test_a_mimi_with_another_transformer_is_refused(
    change: dict[str, object], mimi_directory: Path, tmp_path: Path
) -> None:
    copy_checkpoint(mimi_directory, tmp_path, parts=("",))
    config = json.loads((mimi_directory / "config.json").read_text())
    config["rope_parameters"] |= change.pop("rope_parameters", {})
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match="cannot be served"):
        load_codec(tmp_path)


def test_weights_normalised_in_the_older_way_are_read(
    encodec_directory: Path, tmp_path: Path
) -> None:
    copy_checkpoint(encodec_directory, tmp_path, parts=("",))
    tensors = load_file(tmp_path / "model.safetensors")
    older = {
        name.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ): value
        for name, value in tensors.items()
    }
    assert older.keys() != tensors.keys()
    save_file(older, tmp_path / "model.safetensors")
    codec = load_codec(tmp_path)
    codes = random_codes(codec, 1, 20)
    assert torch.equal(codec.decode(codes), load_codec(encodec_directory).decode(codes))


@pytest.mark.parametrize(
    "change",
    [{"audio_channels": 2}, {"chunk_length_s": 1.0}, {"norm_type": "time_group_norm"}],
)
def test_an_encodec_that_needs_the_whole_recording_is_refused(
    change: dict[str, object], encodec_directory: Path, tmp_path: Path
) -> None:
    config = json.loads((encodec_directory / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="cannot be served"):
        load_codec(tmp_path)


@pytest.mark.parametrize("frames", [1, 2, 21])
def test_the_length_is_known_beforehand(codec: Codec, frames: int) -> None:
    assert codec.decode(random_codes(codec, 2, frames)).shape == (2, codec.num_samples(frames))


def test_dac_at_16_khz_falls_eight_samples_short(dac: Codec) -> None:
    assert dac.num_samples(50) == 320 * 50 - 8


def test_audio_is_float32_within_range_and_without_gradient(codec_directory: Path) -> None:
    codec = load_codec(codec_directory, dtype=torch.bfloat16)
    audio = codec.decode(random_codes(codec, 1, 20))
    assert audio.dtype == torch.float32
    assert audio.abs().max() <= 1
    assert not audio.requires_grad


def test_a_wave_louder_than_full_scale_is_clipped(xcodec_directory: Path, tmp_path: Path) -> None:
    copy_checkpoint(xcodec_directory, tmp_path, parts=("",))
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["acoustic_decoder.conv2.weight"] *= 10
    save_file(tensors, tmp_path / "model.safetensors")
    codec = load_codec(tmp_path)
    assert codec.decode(random_codes(codec, 1, 20)).abs().max() == 1


def test_only_the_decoding_half_of_a_checkpoint_is_needed(
    codec_directory: Path, tmp_path: Path
) -> None:
    codec = load_codec(codec_directory)
    model_type = json.loads((codec_directory / "config.json").read_text())["model_type"]
    copy_checkpoint(codec_directory, tmp_path, DECODING_PARTS[model_type])
    codes = random_codes(codec, 1, 20)
    assert torch.equal(load_codec(tmp_path).decode(codes), codec.decode(codes))


def test_fewer_codebooks_are_the_first_streams(codec_directory: Path) -> None:
    full, half = load_codec(codec_directory), load_codec(codec_directory, num_codebooks=4)
    codes = random_codes(half, 2, 20)

    assert half.num_codebooks == 4
    assert half.decode(codes).shape == (2, half.num_samples(20))
    with pytest.raises(ValueError, match=r"shape \[n, 4\]"):
        half.decode(random_codes(full, 2, 20))


@pytest.mark.parametrize("number", [0, 13])
def test_more_codebooks_than_there_are_is_an_error(dac_directory: Path, number: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 12 codebooks, not {number}"):
        load_codec(dac_directory, num_codebooks=number)


@pytest.mark.parametrize("code", [-1, 1024])
def test_a_code_out_of_range_is_named(xcodec: Codec, code: int) -> None:
    codes = random_codes(xcodec, 2, 6)
    codes[0, 5, 3] = code
    with pytest.raises(ValueError, match=f"stream 5: code {code} of frame 3 is outside 0..1023"):
        xcodec.decode(codes)


def test_a_missing_tensor_is_an_error(codec_directory: Path, tmp_path: Path) -> None:
    copy_checkpoint(codec_directory, tmp_path, parts=("quantizer",))
    with pytest.raises(RuntimeError, match="Missing key"):
        load_codec(tmp_path)


@pytest.mark.parametrize("name", ["xcodec", "dac", "encodec", "mimi"])
def test_weights_of_a_layer_that_is_not_known_are_an_error(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    copy_checkpoint(request.getfixturevalue(f"{name}_directory"), tmp_path, parts=("",))
    tensors = load_file(tmp_path / "model.safetensors")
    decoder = "acoustic_decoder" if name == "xcodec" else "decoder"
    layer = f"{decoder}.layers.99.weight"
    save_file(tensors | {layer: torch.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match=f"Unexpected key.*{layer}"):
        load_codec(tmp_path)


def test_weights_of_another_shape_are_an_error(dac_directory: Path, tmp_path: Path) -> None:
    copy_checkpoint(dac_directory, tmp_path, parts=("",))
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["decoder.conv1.bias"] = torch.zeros(3)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match=r"decoder.conv1.bias must have shape \(16,\), not"):
        load_codec(tmp_path)


def test_missing_weights_are_an_error(dac_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((dac_directory / "config.json").read_text())
    with pytest.raises(FileNotFoundError, match="safetensors"):
        load_codec(tmp_path)


def test_an_unknown_codec_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "vinyl"}')
    with pytest.raises(ValueError, match="'vinyl'; known: dac, encodec, mimi, xcodec"):
        load_codec(tmp_path)
