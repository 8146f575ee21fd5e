"""XEUS and its centroids are read as ESPnet publishes them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file

from tests.unit.vocoder import espnet_dac, espnet_xeus
from vocoder_service.encoder import load_encoder
from vocoder_service.kmeans_file import read_centroids
from vocoder_service.ssl_units import CENTROIDS, CENTROIDS_FILE, QUANTIZER_FILE, SslTokenizer
from vocoder_service.xeus import Xeus

DATA = Path(__file__).parent / "data"
UNITS, HOP, REACH = 40, 320, 400


def clip(samples: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(samples, generator=torch.Generator().manual_seed(seed)) / 10


def write_centroids(directory: Path) -> torch.Tensor:
    centroids = torch.randn(UNITS, espnet_xeus.WIDTH, generator=torch.Generator().manual_seed(1))
    save_file({CENTROIDS: centroids}, directory / CENTROIDS_FILE)
    return centroids


def test_features_are_those_of_an_independent_encoder(tmp_path: Path) -> None:
    tensors = espnet_xeus.write(tmp_path, seed=1)
    model = Xeus.load(tmp_path)
    assert (model.width, model.layers) == (espnet_xeus.WIDTH, espnet_xeus.BLOCKS)
    assert (model.hop_length, model.reach) == (HOP, REACH)
    for samples in (REACH, REACH + 50 * HOP + 100):
        wave = clip(samples)
        for layer in range(1, espnet_xeus.BLOCKS + 1):
            expected = espnet_xeus.features(tensors, wave, layer)
            assert torch.allclose(model.features(wave, layer), expected, rtol=0, atol=2e-5)


def test_units_are_the_nearest_centroids_of_the_last_layer(tmp_path: Path) -> None:
    tensors = espnet_xeus.write(tmp_path, seed=2)
    centroids = write_centroids(tmp_path)
    wave = clip(30 * HOP)
    padded = torch.nn.functional.pad(wave, (0, REACH - HOP))
    for layer in (espnet_xeus.BLOCKS, 2):
        features = espnet_xeus.features(tensors, padded, layer)
        expected = torch.cdist(features, centroids).argmin(dim=1)
        units = SslTokenizer.load(tmp_path).encode(wave.numpy())
        assert units.tolist() == expected.tolist()
        assert len(set(units)) > 5
        (tmp_path / QUANTIZER_FILE).write_text(json.dumps({"layer": 2}))


def test_files_of_espnets_alone_make_the_nine_streams(tmp_path: Path) -> None:
    """A DAC and XEUS as they are published, and k-means as scikit-learn wrote it."""
    espnet_dac.write(tmp_path / "codec", seed=3)
    espnet_xeus.write(tmp_path / "ssl", seed=3)
    write_centroids(tmp_path / "ssl")
    encoder = load_encoder(tmp_path / "codec", tmp_path / "ssl", num_codebooks=8)
    codes = np.asarray(encoder.encode(clip(10 * HOP + 1).numpy()))
    assert codes.shape == (11, 9)
    only = load_encoder(tmp_path / "codec").encode(clip(10 * HOP + 1).numpy())
    assert np.array_equal(codes[:, 1:], only)


@pytest.mark.parametrize("name", ["kmeans.mdl", "minibatch.mdl"])
def test_centroids_of_scikit_learns_are_read(name: str) -> None:
    """Written by joblib 1.6 of scikit-learn 1.9's KMeans (float64) and MiniBatchKMeans."""
    expected = np.arange(24, dtype=np.float32).reshape(6, 4) / 8
    found = read_centroids(DATA / name)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


def test_a_file_of_centroids_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    whole = (DATA / "kmeans.mdl").read_bytes()
    file = tmp_path / "km.mdl"
    for content, complaint in (
        (whole[: len(whole) // 2], "km.mdl: is damaged"),
        (b"x\x9c" + whole, "no uncompressed file"),
        (b"", "no uncompressed file"),
        (b"\x80\x04}.", "has no cluster_centers_"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=complaint):
            read_centroids(file)


def test_nothing_in_a_file_of_centroids_is_run(tmp_path: Path) -> None:
    file, proof = tmp_path / "km.mdl", tmp_path / "ran"
    file.write_bytes(f"\x80\x02cos\nsystem\n(X\x00\x00\x00\x00Vtouch {proof}\ntR.".encode("latin1"))
    with pytest.raises(ValueError, match="has no cluster_centers_"):
        read_centroids(file)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("section", "change"),
    [
        (None, {"frontend": "default"}),
        (None, {"normalize": "utterance_mvn"}),
        (None, {"encoder": "conformer"}),
        ("frontend_conf", {"conv_mode": "depth_sep"}),
        ("encoder_conf", {"attention_layer_type": "rel_selfattn"}),
        ("encoder_conf", {"pos_enc_layer_type": "rel_pos"}),
        ("encoder_conf", {"input_layer": "conv2d"}),
        ("encoder_conf", {"qk_norm": True}),
    ],
)
def test_forms_that_are_not_read_are_named(
    section: str | None, change: dict[str, Any], tmp_path: Path
) -> None:
    espnet_xeus.write(tmp_path, seed=4)
    training = yaml.safe_load((tmp_path / "config.yaml").read_text())
    (training if section is None else training[section]).update(change)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(training))
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=f"with {name} {value!r} cannot be read"):
        Xeus.load(tmp_path)


def test_weights_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    tensors = espnet_xeus.write(tmp_path, seed=5)
    file = tmp_path / "xeus_checkpoint_new.pth"
    name = "encoder.encoders.1.merge_proj.bias"
    torch.save({n: t for n, t in tensors.items() if n != name}, file)
    with pytest.raises(RuntimeError, match="Missing key"):
        Xeus.load(tmp_path)
    torch.save(tensors | {"encoder.more.bias": torch.zeros(1)}, file)
    with pytest.raises(RuntimeError, match=r"Unexpected key.*encoder\.more\.bias"):
        Xeus.load(tmp_path)
    shutil.copyfile(file, tmp_path / "another.pth")
    with pytest.raises(FileNotFoundError, match=r"one \.pth file, not 2"):
        Xeus.load(tmp_path)
