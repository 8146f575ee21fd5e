"""Audio to codes: every codec that can encode, SSL units, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    DacModel,
    EncodecConfig,
    EncodecModel,
    HubertModel,
    MimiConfig,
    MimiModel,
    XcodecModel,
)

from vocoder_service.clips import AudioEncoder
from vocoder_service.encoder import CODEC_ENCODERS, load_encoder
from vocoder_service.ssl_units import (
    CENTROIDS_FILE,
    QUANTIZER_FILE,
    SslTokenizer,
    TransformersModel,
)
from vocoder_service.tiny import make_tiny_dac, make_tiny_ssl

RATE, HOP = 16000, 320
UNITS = 50


def noise(samples: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(samples) / 10).astype(np.float32)


@pytest.fixture(scope="module")
def ssl_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ssl")
    make_tiny_ssl(directory, seed=3, units=UNITS)
    return directory


@pytest.fixture(scope="module")
def encodec_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("encodec")
    torch.manual_seed(4)
    model: Any = EncodecModel(EncodecConfig(num_filters=4, target_bandwidths=[1.5, 6.0]))
    for layer in model.quantizer.layers:
        layer.codebook.embed.normal_()
    model.save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def mimi_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("mimi")
    torch.manual_seed(5)
    config = MimiConfig(
        num_filters=4,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        upsample_groups=32,
        head_dim=16,
        intermediate_size=32,
        codebook_dim=16,
        vector_quantization_hidden_dimension=16,
        num_quantizers=6,
    )
    model: Any = MimiModel(config)
    for name, buffer in model.named_buffers():
        if name.endswith("embed_sum"):
            buffer.normal_()
    model.save_pretrained(directory)
    return directory


@pytest.mark.parametrize("samples", [1, HOP - 1, HOP, HOP + 1, 7 * HOP, RATE + 17])
def test_dac_codes_are_the_models_own(dac_directory: Path, samples: int) -> None:
    codes = load_encoder(dac_directory).encode(noise(samples))
    frames = -(-samples // HOP)
    assert codes.shape == (frames, 12)
    assert codes.dtype == np.int32
    wave = torch.from_numpy(np.pad(noise(samples), (0, frames * HOP - samples)))
    model: Any = DacModel.from_pretrained(dac_directory)
    with torch.inference_mode():
        expected = model.encode(wave[None, None]).audio_codes[0].T
    assert np.array_equal(codes[: len(expected)], expected.numpy())


@pytest.mark.parametrize(
    ("name", "rate", "hop", "streams", "size"),
    [
        ("xcodec", 16000, 320, 8, 1024),
        ("encodec", 24000, 320, 8, 1024),
        ("mimi", 24000, 1920, 6, 2048),
    ],
)
@pytest.mark.parametrize("frames", [1.0, 2.5, 20.0])
def test_other_codecs(
    name: str,
    rate: int,
    hop: int,
    streams: int,
    size: int,
    frames: float,
    request: pytest.FixtureRequest,
) -> None:
    encoder = load_encoder(request.getfixturevalue(f"{name}_directory"))
    assert encoder.sample_rate == rate
    codes = encoder.encode(noise(int(frames * hop)))
    assert codes.shape == (int(np.ceil(frames)), streams)
    assert codes.min() >= 0
    assert codes.max() < size


def test_the_encoders_are_those_of_the_codecs() -> None:
    assert {c.config_class.model_type for c in (DacModel, XcodecModel)} <= CODEC_ENCODERS.keys()


def test_the_first_codebooks_of_many(dac_directory: Path) -> None:
    clip = noise(RATE)
    few, all_ = (load_encoder(dac_directory, num_codebooks=n).encode(clip) for n in (3, None))
    assert np.array_equal(few, all_[:, :3])
    with pytest.raises(ValueError, match="has 12 codebooks, not 13"):
        load_encoder(dac_directory, num_codebooks=13)


@pytest.fixture(scope="module")
def both(dac_directory: Path, ssl_directory: Path) -> AudioEncoder:
    return load_encoder(dac_directory, ssl_directory, num_codebooks=8)


@pytest.mark.parametrize("samples", [1, 319, 320, 321, 400, 16000, 40001])
def test_ssl_units_stand_in_front_of_the_codes(
    both: AudioEncoder, dac_directory: Path, ssl_directory: Path, samples: int
) -> None:
    clip = noise(samples)
    codes = both.encode(clip)
    assert codes.shape == (-(-samples // HOP), 9)
    assert np.array_equal(codes[:, 1:], load_encoder(dac_directory, num_codebooks=8).encode(clip))
    assert np.array_equal(codes[:, 0], SslTokenizer.load(ssl_directory).encode(clip))


def test_units_are_the_nearest_centroids_of_the_layer(ssl_directory: Path) -> None:
    model: Any = HubertModel.from_pretrained(ssl_directory)
    centroids = torch.randn(UNITS, 16, generator=torch.Generator().manual_seed(0))
    clip = noise(10 * HOP + 80)
    with torch.inference_mode():
        states = model(torch.from_numpy(clip)[None], output_hidden_states=True).hidden_states
    for layer, state in enumerate(states):
        units = SslTokenizer(TransformersModel(model), centroids, layer).encode(clip)
        nearest = (state[0][:, None] - centroids).square().sum(dim=2).argmin(dim=1)
        assert np.array_equal(units[: len(nearest)], nearest.numpy())
    with pytest.raises(ValueError, match=r"layer 3 is not among 0\.\.2"):
        SslTokenizer(TransformersModel(model), centroids, 3)
    with pytest.raises(ValueError, match="centroids must be"):
        SslTokenizer(TransformersModel(model), centroids[:, 1:], 2)


def test_normalised_samples_have_no_level(ssl_directory: Path, tmp_path: Path) -> None:
    for file in ssl_directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / QUANTIZER_FILE).write_text(json.dumps({"layer": 1, "normalise": True}))
    tokenizer = SslTokenizer.load(tmp_path)
    clip = noise(RATE)
    assert np.array_equal(tokenizer.encode(clip), tokenizer.encode(4 * clip))


def test_different_audio_has_different_codes(both: AudioEncoder) -> None:
    one, other = both.encode(noise(RATE, 1)), both.encode(noise(RATE, 2))
    assert (one != other).any(axis=0).all()
    assert len(np.unique(one[:, 0])) > 5


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros((2, 5), np.float32),
        np.zeros(5),
        np.array([0, np.nan, 0], np.float32),
        np.array([0, np.inf], np.float32),
    ],
)
def test_what_is_no_audio_is_refused(both: AudioEncoder, samples: np.ndarray) -> None:
    with pytest.raises(ValueError, match="audio"):
        both.encode(samples)


def test_an_unknown_ssl_model_is_named(ssl_directory: Path, tmp_path: Path) -> None:
    (tmp_path / QUANTIZER_FILE).write_bytes((ssl_directory / QUANTIZER_FILE).read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="'bert' is not one of hubert"):
        SslTokenizer.load(tmp_path)


def test_missing_files_are_named(ssl_directory: Path, dac_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_encoder(tmp_path)
    with pytest.raises(FileNotFoundError, match=QUANTIZER_FILE):
        load_encoder(dac_directory, tmp_path)
    for file in ssl_directory.iterdir():
        if file.name != CENTROIDS_FILE:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(FileNotFoundError, match=CENTROIDS_FILE):
        SslTokenizer.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="'bert' cannot encode"):
        load_encoder(tmp_path)


def test_frames_that_do_not_align_are_refused(ssl_directory: Path, mimi_directory: Path) -> None:
    with pytest.raises(ValueError, match="do not go with"):
        load_encoder(mimi_directory, ssl_directory)


def test_a_tiny_dac_has_an_encoder(tmp_path: Path) -> None:
    make_tiny_dac(tmp_path, seed=0, num_codebooks=8)
    codes = load_encoder(tmp_path).encode(noise(RATE))
    assert len(np.unique(codes)) > 10
