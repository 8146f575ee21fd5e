"""What a model directory must hold to make codes of audio, and what is said where it does not."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from engine_adapter.encoder_files import audio_encoder_fault, encoder_fault
from tests.unit.vocoder import espnet_dac
from vocoder_service.encoder import load_encoder
from vocoder_service.tiny import make_tiny_audio_tower, make_tiny_dac, make_tiny_ssl


def codec(directory: Path, *tensors: str) -> None:
    folder = directory / "codec"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save_file({name: np.zeros(1) for name in tensors}, folder / "model.safetensors")


def ssl(directory: Path, kind: str = "hubert") -> Path:
    folder = directory / "ssl"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    (folder / "quantizer.json").touch()
    for name in ("centroids.safetensors", "model.safetensors"):
        save_file({"a": np.zeros(1)}, folder / name)
    return folder


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 1217\n"
"""What stands in the place of a file that Git LFS has not fetched."""


@pytest.mark.parametrize("encoder", ["encoder.block.0.weight", "acoustic_encoder.conv1.bias"])
def test_a_codec_with_its_encoder(tmp_path: Path, encoder: str) -> None:
    codec(tmp_path, "decoder.conv1.bias", encoder)
    assert encoder_fault(tmp_path, units=False) is None
    ssl(tmp_path)
    assert encoder_fault(tmp_path, units=True) is None


def test_a_codec_that_only_decodes(tmp_path: Path) -> None:
    codec(tmp_path, "decoder.conv1.bias", "quantizer.encoder.bias")
    assert encoder_fault(tmp_path, units=False) == "codec/: its weights have no encoder"


def test_espnets_codec_has_its_encoder_in_the_file_as_published(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path / "codec", seed=0)
    assert encoder_fault(tmp_path, units=False) is None
    (weights,) = tmp_path.rglob("*.pth")
    torch.save({n: t for n, t in tensors.items() if ".encoder." not in n}, weights)
    assert encoder_fault(tmp_path, units=False) == "codec/: its weights have no encoder"
    weights.write_bytes(b"")
    assert encoder_fault(tmp_path, units=False) == "codec/: its weights have no encoder"


@pytest.mark.parametrize("name", ["config.json", "quantizer.json", "centroids.safetensors"])
def test_an_ssl_model_that_is_not_whole(tmp_path: Path, name: str) -> None:
    codec(tmp_path, "encoder.a")
    (ssl(tmp_path) / name).unlink()
    assert encoder_fault(tmp_path, units=True) == f"ssl/: {name} is missing"


def test_espnets_ssl_model_and_its_centroids(tmp_path: Path) -> None:
    codec(tmp_path, "encoder.a")
    folder = tmp_path / "ssl"
    folder.mkdir()
    (folder / "config.yaml").touch()
    assert encoder_fault(tmp_path, units=True) == "ssl/: it must hold one .pth file, not 0"
    (folder / "xeus_checkpoint_new.pth").touch()
    assert encoder_fault(tmp_path, units=True) == "ssl/: centroids.safetensors is missing"
    (folder / "km_opus_lm.mdl").touch()
    assert encoder_fault(tmp_path, units=True) is None
    (folder / "xeus_checkpoint_old.pth").touch()
    assert encoder_fault(tmp_path, units=True) == "ssl/: it must hold one .pth file, not 2"


def test_what_is_said_to_encode_does(tmp_path: Path) -> None:
    make_tiny_dac(tmp_path / "codec", 0, num_codebooks=2)
    make_tiny_ssl(tmp_path / "ssl", 0, units=5)
    assert encoder_fault(tmp_path, units=True) is None
    codes = load_encoder(tmp_path / "codec", tmp_path / "ssl").encode(np.zeros(640, np.float32))
    assert np.asarray(codes).shape == (2, 3)


@pytest.mark.parametrize("damage", [lambda _: POINTER, lambda whole: whole[:-1], lambda _: b""])
@pytest.mark.parametrize("name", ["codec/model", "ssl/model", "ssl/centroids"])
def test_weights_that_are_not_whole_cost_hearing_and_are_named(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    codec(tmp_path, "encoder.a")
    ssl(tmp_path)
    file = tmp_path / f"{name}.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    fault = encoder_fault(tmp_path, units=True)
    assert fault is not None
    assert fault.startswith(f"{name.split('/')[0]}/: {file.name}: ")


def test_an_ssl_model_without_weights(tmp_path: Path) -> None:
    codec(tmp_path, "encoder.a")
    (ssl(tmp_path) / "model.safetensors").rename(tmp_path / "ssl" / "pytorch_model.bin")
    assert encoder_fault(tmp_path, units=True) is None
    (tmp_path / "ssl" / "pytorch_model.bin").unlink()
    assert encoder_fault(tmp_path, units=True) == "ssl/: its weights are missing"


def test_an_encoder_of_continuous_audio_that_is_not_whole(tmp_path: Path) -> None:
    assert audio_encoder_fault(tmp_path) == "audio_encoder/: is missing"
    folder = tmp_path / "audio_encoder"
    make_tiny_audio_tower(folder, 0, 64)
    assert audio_encoder_fault(tmp_path) is None
    for name, fault in (
        ("model.safetensors", "its weights are missing"),
        ("adaptor.safetensors", "adaptor.safetensors is missing"),
        ("preprocessor_config.json", "preprocessor_config.json is missing"),
    ):
        away = (folder / name).rename(tmp_path / name)
        assert audio_encoder_fault(tmp_path) == f"audio_encoder/: {fault}"
        away.rename(folder / name)
    (folder / "adaptor.safetensors").write_bytes(POINTER)
    assert "adaptor.safetensors: is no safetensors file" in str(audio_encoder_fault(tmp_path))
