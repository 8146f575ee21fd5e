"""Small real codecs, made once per session."""

import json
from pathlib import Path

import pytest
import torch

from tests.unit.vocoder import espnet_dac
from vocoder_service.codec import Codec, load_codec
from vocoder_service.tiny import make_tiny_dac, make_tiny_encodec, make_tiny_mimi, make_tiny_xcodec


@pytest.fixture(scope="session")
def xcodec_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("xcodec")
    make_tiny_xcodec(directory, seed=1)
    return directory


@pytest.fixture(scope="session")
def dac_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dac")
    make_tiny_dac(directory, seed=2, num_codebooks=12, codebook_size=256)
    return directory


@pytest.fixture(scope="session")
def dac_44_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DAC as that of 44.1 kHz."""
    directory = tmp_path_factory.mktemp("dac_44")
    make_tiny_dac(directory, 7, 9, 256, sample_rate=44_100, ratios=(8, 8, 4, 2))
    return directory


@pytest.fixture(scope="session")
def encodec_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("encodec")
    make_tiny_encodec(directory, seed=3, num_codebooks=8, codebook_size=256)
    return directory


@pytest.fixture(scope="session")
def acausal_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An EnCodec that is not causal."""
    directory = tmp_path_factory.mktemp("acausal")
    make_tiny_encodec(directory, seed=4, num_codebooks=6, codebook_size=256, causal=False)
    return directory


@pytest.fixture(scope="session")
def mimi_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Mimi that remembers 20 frames in each layer, so that tests need not be long."""
    directory = tmp_path_factory.mktemp("mimi")
    make_tiny_mimi(directory, seed=5, num_codebooks=8, codebook_size=256)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"sliding_window": 40}))
    return directory


@pytest.fixture(scope="session")
def espnet_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("espnet")
    espnet_dac.write(directory, seed=6)
    return directory


@pytest.fixture(scope="session")
def xcodec(xcodec_directory: Path) -> Codec:
    return load_codec(xcodec_directory)


@pytest.fixture(scope="session")
def dac(dac_directory: Path) -> Codec:
    return load_codec(dac_directory)


@pytest.fixture(scope="session")
def dac_44(dac_44_directory: Path) -> Codec:
    return load_codec(dac_44_directory)


@pytest.fixture(scope="session")
def encodec(encodec_directory: Path) -> Codec:
    return load_codec(encodec_directory)


@pytest.fixture(scope="session")
def acausal(acausal_directory: Path) -> Codec:
    return load_codec(acausal_directory)


@pytest.fixture(scope="session")
def mimi(mimi_directory: Path) -> Codec:
    return load_codec(mimi_directory)


@pytest.fixture(scope="session")
def espnet(espnet_directory: Path) -> Codec:
    return load_codec(espnet_directory)


CONVOLUTIONS = ["xcodec", "dac", "dac_44"]
HUGGING_FACE = [*CONVOLUTIONS, "encodec", "acausal", "mimi"]
REMEMBERING = ["encodec", "acausal", "mimi", "espnet"]


@pytest.fixture(params=HUGGING_FACE)
def codec_directory(request: pytest.FixtureRequest) -> Path:
    directory: Path = request.getfixturevalue(f"{request.param}_directory")
    return directory


@pytest.fixture(params=CONVOLUTIONS + REMEMBERING)
def codec(request: pytest.FixtureRequest) -> Codec:
    loaded: Codec = request.getfixturevalue(request.param)
    return loaded


@pytest.fixture(params=CONVOLUTIONS)
def conv_codec(request: pytest.FixtureRequest) -> Codec:
    """One whose decoder is nothing but convolutions."""
    loaded: Codec = request.getfixturevalue(request.param)
    return loaded


@pytest.fixture(params=REMEMBERING)
def remembering(request: pytest.FixtureRequest) -> Codec:
    """One whose decoder hears all that was before, or far back."""
    loaded: Codec = request.getfixturevalue(request.param)
    return loaded


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tiny convolutions gain nothing from threads, and other tests may be running."""
    torch.set_num_threads(1)
