"""What a model directory must hold to make codes of audio, and what is said where it does not."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine_adapter.encoder_files import encoder_fault
from vocoder_service.encoder import load_encoder
from vocoder_service.tiny import make_tiny_dac, make_tiny_ssl


def codec(directory: Path, *tensors: str) -> None:
    folder = directory / "codec"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save_file({name: np.zeros(1) for name in tensors}, folder / "model.safetensors")


def ssl(directory: Path, kind: str = "hubert") -> Path:
    folder = directory / "ssl"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    for name in ("quantizer.json", "centroids.safetensors"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("encoder", ["encoder.block.0.weight", "acoustic_encoder.conv1.bias"])
def test_a_codec_with_its_encoder(tmp_path: Path, encoder: str) -> None:
    codec(tmp_path, "decoder.conv1.bias", encoder)
    assert encoder_fault(tmp_path, units=False) is None
    ssl(tmp_path)
    assert encoder_fault(tmp_path, units=True) is None


def test_a_codec_that_only_decodes(tmp_path: Path) -> None:
    codec(tmp_path, "decoder.conv1.bias", "quantizer.encoder.bias")
    assert encoder_fault(tmp_path, units=False) == "codec/: its weights have no encoder"


def test_espnet_s_codec_only_decodes(tmp_path: Path) -> None:
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "config.yaml").write_text("codec: dac")
    fault = encoder_fault(tmp_path, units=False)
    assert fault is not None
    assert fault.startswith("codec/: it is no codec of Hugging Face")


@pytest.mark.parametrize("name", ["config.json", "quantizer.json", "centroids.safetensors"])
def test_an_ssl_model_that_is_not_whole(tmp_path: Path, name: str) -> None:
    codec(tmp_path, "encoder.a")
    (ssl(tmp_path) / name).unlink()
    assert encoder_fault(tmp_path, units=True) == f"ssl/: {name} is missing"


def test_an_ssl_model_that_needs_a_package(tmp_path: Path) -> None:
    codec(tmp_path, "encoder.a")
    ssl(tmp_path, "xeus")
    fault = encoder_fault(tmp_path, units=True)
    assert fault is not None
    assert fault.startswith("ssl/: ESPnet's own model")


def test_what_is_said_to_encode_does(tmp_path: Path) -> None:
    make_tiny_dac(tmp_path / "codec", 0, num_codebooks=2)
    make_tiny_ssl(tmp_path / "ssl", 0, units=5)
    assert encoder_fault(tmp_path, units=True) is None
    codes = load_encoder(tmp_path / "codec", tmp_path / "ssl").encode(np.zeros(640, np.float32))
    assert np.asarray(codes).shape == (2, 3)
