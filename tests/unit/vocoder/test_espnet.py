"""ESPnet's DAC decodes as its description says, from the files that ESPnet publishes."""

from pathlib import Path

import pytest
import torch
import yaml

from tests.unit.vocoder import espnet_dac
from vocoder_service.codec import Codec, load_codec


def random_codes(frames: int, streams: int = espnet_dac.STREAMS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(frames)
    return torch.randint(espnet_dac.CODES, (3, streams, frames), generator=generator)


def config_of(directory: Path) -> Path:
    (config,) = directory.rglob("config.yaml")
    return config


def change_config(directory: Path, **changes: object) -> None:
    config = config_of(directory)
    training = yaml.safe_load(config.read_text())
    training["codec_conf"]["generator_params"] |= changes
    config.write_text(yaml.safe_dump(training))


def test_it_describes_itself(espnet: Codec) -> None:
    assert (espnet.sample_rate, espnet.hop_length) == (16000, 320)
    assert (espnet.num_codebooks, espnet.codebook_size) == (8, 64)
    assert (espnet.right_context, espnet.first_frames) == (7, 8)


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5, 40])
def test_it_decodes_as_an_independent_decoder_does(frames: int, tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=1)
    codes = random_codes(frames)
    audio = load_codec(tmp_path).decode(codes)
    assert audio.shape == (3, 320 * frames)
    assert torch.allclose(audio, espnet_dac.decode(tensors, codes), rtol=0, atol=1e-6)


def test_narrow_codebooks_are_projected(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=2, codebook_dim=4)
    codes = random_codes(20)
    expected = espnet_dac.decode(tensors, codes)
    assert torch.allclose(load_codec(tmp_path).decode(codes), expected, rtol=0, atol=1e-6)


def test_fewer_codebooks_are_the_first_streams(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=3)
    codes = random_codes(20, streams=3)
    codec = load_codec(tmp_path, num_codebooks=3)
    expected = espnet_dac.decode(tensors, codes)
    assert torch.allclose(codec.decode(codes), expected, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="1 to 8 codebooks, not 9"):
        load_codec(tmp_path, num_codebooks=9)


def test_weights_normalised_in_the_newer_way_are_read(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=1)
    newer = {
        name.replace("weight_g", "parametrizations.weight.original0").replace(
            "weight_v", "parametrizations.weight.original1"
        ): value
        for name, value in tensors.items()
    }
    torch.save(newer, config_of(tmp_path).with_name("360epoch.pth"))
    codes = random_codes(20)
    expected = espnet_dac.decode(tensors, codes)
    assert torch.allclose(load_codec(tmp_path).decode(codes), expected, rtol=0, atol=1e-6)


def test_what_a_configuration_leaves_out_is_as_espnet_has_it(tmp_path: Path) -> None:
    espnet_dac.write(tmp_path, seed=5)
    codes = random_codes(20)
    expected = load_codec(tmp_path).decode(codes)
    config = config_of(tmp_path)
    training = yaml.safe_load(config.read_text())
    generator = training["codec_conf"]["generator_params"]
    for name in ("encdec_activation", "encdec_ratios", "encdec_pad_mode", "encdec_lstm"):
        del generator[name]
    config.write_text(yaml.safe_dump(training))
    assert torch.equal(load_codec(tmp_path).decode(codes), expected)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"encdec_activation": "ELU"}, "encdec_activation 'ELU'"),
        ({"encdec_channels": 2}, "encdec_channels 2"),
        ({"encdec_norm": "time_group_norm"}, "encdec_norm"),
        ({"decoder_final_activation": "Tanh"}, "decoder_final_activation 'Tanh'"),
        ({"encdec_lstm": 0}, "without an LSTM"),
        ({"encdec_pad_mode": "circular"}, "padding 'circular'"),
    ],
)
def test_forms_that_are_not_served_are_named(
    change: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    espnet_dac.write(tmp_path, seed=6)
    change_config(tmp_path, **change)
    with pytest.raises(ValueError, match=complaint):
        load_codec(tmp_path)


def test_another_codec_of_espnet_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("codec: soundstream\n")
    with pytest.raises(ValueError, match="unknown ESPnet codec 'soundstream'; known: dac"):
        load_codec(tmp_path)


def test_weights_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=7)
    weights = config_of(tmp_path).with_name("360epoch.pth")
    for missing in ("decoder.model.0.conv.conv.bias", "quantizer.vq.layers.3._codebook.embed"):
        kept = {name: value for name, value in tensors.items() if not name.endswith(missing)}
        torch.save(kept, weights)
        with pytest.raises(RuntimeError, match="Missing key"):
            load_codec(tmp_path)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"one \.pth file, not 0"):
        load_codec(tmp_path)
