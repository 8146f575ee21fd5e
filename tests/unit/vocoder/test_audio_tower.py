"""Audio to embeddings: features, the tower, the layer behind it, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import WhisperFeatureExtractor
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder

from tests.reference.log_mel import log_mel
from vocoder_service.audio_tower import ADAPTOR_FILE, AudioTower
from vocoder_service.log_mel import BAGPIPER_FEATURES, SETTINGS_FILE, LogMel
from vocoder_service.tiny import make_tiny_audio_tower

RATE, WIDTH = 16000, 20
FEATURES = LogMel(BAGPIPER_FEATURES)


def noise(samples: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(samples) / 10 + 0.02).astype(np.float32)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tower")
    make_tiny_audio_tower(path, seed=1, width=WIDTH)
    return path


@pytest.fixture(scope="module")
def tower(directory: Path) -> AudioTower:
    return AudioTower.load(directory, WIDTH)


@settings(max_examples=30)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_features_are_those_written_out(samples: int, seed: int) -> None:
    clip = noise(samples, seed)
    features = FEATURES.of(clip)
    assert features.shape == (128, -(-samples // 160))
    assert np.abs(features.numpy() - log_mel(clip)).max() < 1e-4


@pytest.mark.parametrize("samples", [1, 16037, 300 * RATE - 100, 300 * RATE])
def test_features_are_those_of_a_clip_in_minutes_of_silence(samples: int) -> None:
    """As ESPnet has transformers make them."""
    clip = noise(samples)
    extractor = WhisperFeatureExtractor(feature_size=128, chunk_length=300)
    padded = extractor(
        [clip],
        truncation=False,
        do_normalize=True,
        return_attention_mask=True,
        return_tensors="np",
        sampling_rate=RATE,
    )
    frames = padded["attention_mask"].sum()
    assert np.array_equal(FEATURES.of(clip), padded["input_features"][0, :, :frames])


def test_features_do_not_depend_on_loudness_or_offset() -> None:
    clip = noise(RATE)
    other = (clip / 3 - 0.1).astype(np.float32)
    assert torch.allclose(FEATURES.of(clip), FEATURES.of(other), atol=1e-3)
    plain = LogMel({**BAGPIPER_FEATURES, "do_normalize": False})
    assert not torch.allclose(plain.of(clip), plain.of(other), atol=1e-3)


@pytest.mark.parametrize("samples", [700, 40000])
def test_rows_are_the_towers_behind_the_adaptor(
    directory: Path, tower: AudioTower, samples: int
) -> None:
    clip = noise(samples)
    encoder = Qwen3OmniMoeAudioEncoder.from_pretrained(directory)
    features = torch.from_numpy(log_mel(clip)).float()
    with torch.inference_mode():
        encoded = encoder(features, feature_lens=torch.tensor([features.shape[1]]))
    weights = load_file(directory / ADAPTOR_FILE)
    expected = encoded.last_hidden_state @ weights["weight"].T + weights["bias"]
    rows = tower.encode(clip)
    assert rows.dtype == np.float32
    assert rows.shape == expected.shape
    assert np.abs(rows - expected.numpy()).max() < 1e-4


@settings(max_examples=20)
@given(st.integers(1, 40000))
def test_a_clip_has_thirteen_rows_a_second(tower: AudioTower, samples: int) -> None:
    """The last, shorter second as many as three convolutions leave of it."""
    seconds, rest = divmod(-(-samples // 160), 100)
    for _ in range(3):
        rest = -(-rest // 2)
    rows = len(tower.encode(noise(samples)))
    assert rows == 13 * seconds + rest
    assert rows >= samples / tower.limits.samples_per_row


def test_what_is_heard_matters(tower: AudioTower) -> None:
    rows = [tower.encode(noise(RATE, seed)) for seed in (1, 1, 2)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2], atol=0.1)
    silence = tower.encode(np.zeros(RATE, np.float32))
    assert np.isfinite(silence).all()


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros((2, 9), np.float32),
        np.zeros(9),
        np.full(9, np.inf, np.float32),
        np.zeros(300 * RATE + 1, np.float32),
    ],
)
def test_what_is_no_clip_is_refused(tower: AudioTower, samples: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"audio|samples"):
        tower.encode(samples)


def test_directories_that_are_wrong(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="20 wide, the model's 64"):
        AudioTower.load(directory, 64)

    copy = Path(shutil.copytree(directory, tmp_path / "tensors"))
    weights = load_file(copy / "model.safetensors")
    del weights["ln_post.bias"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"missing or unknown tensors: ln_post\.bias"):
        AudioTower.load(copy, WIDTH)

    copy = Path(shutil.copytree(directory, tmp_path / "bins"))
    (copy / SETTINGS_FILE).write_text(json.dumps({**BAGPIPER_FEATURES, "feature_size": 80}))
    with pytest.raises(ValueError, match="reads 128 bins, not 80"):
        AudioTower.load(copy, WIDTH)
    (copy / SETTINGS_FILE).write_text("[]")
    with pytest.raises(ValueError, match="not a JSON object"):
        AudioTower.load(copy, WIDTH)

    copy = Path(shutil.copytree(directory, tmp_path / "adaptor"))
    save_file({"weight": torch.zeros(WIDTH, 24)}, copy / ADAPTOR_FILE)
    with pytest.raises(ValueError, match=r"holds weight$"):
        AudioTower.load(copy, WIDTH)
    (copy / SETTINGS_FILE).unlink()
    with pytest.raises(FileNotFoundError, match=SETTINGS_FILE):
        AudioTower.load(copy, WIDTH)
