"""Tiny codecs look like the official checkpoints and can be heard."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from vocoder_service.codec import load_codec
from vocoder_service.encoder import load_encoder
from vocoder_service.tiny import make_tiny_dac, make_tiny_encodec, make_tiny_mimi, make_tiny_xcodec

makers = pytest.mark.parametrize(
    "make", [make_tiny_xcodec, make_tiny_dac, make_tiny_encodec, make_tiny_mimi]
)


@makers
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_codes_can_be_heard_and_told_apart(
    make: Callable[..., None], seed: int, tmp_path: Path
) -> None:
    make(tmp_path, seed, num_codebooks=4, codebook_size=64)
    codec = load_codec(tmp_path)
    varied = torch.randint(64, (1, 4, 50), generator=torch.Generator().manual_seed(seed))
    held = torch.arange(5)[:, None, None].expand(5, 4, 50)

    waves = codec.decode(torch.cat([varied, held]))

    assert ((waves.abs().amax(1) > 0.05) & (waves.abs().amax(1) < 0.8)).all()
    assert torch.pdist(waves, p=float("inf")).min() > 0.05


@makers
def test_the_seed_decides_everything(make: Callable[..., None], tmp_path: Path) -> None:
    files = []
    for name, seed in [("a", 3), ("b", 3), ("c", 4)]:
        torch.manual_seed(len(name))
        make(tmp_path / name, seed, num_codebooks=2, codebook_size=16)
        files.append((tmp_path / name / "model.safetensors").read_bytes())
    assert files[0] == files[1] != files[2]


@makers
@pytest.mark.parametrize(("num_codebooks", "codebook_size"), [(3, 256), (8, 1024)])
def test_the_whole_model_encodes_too(
    make: Callable[..., None], num_codebooks: int, codebook_size: int, tmp_path: Path
) -> None:
    make(tmp_path, 0, num_codebooks, codebook_size)
    noise = torch.randn(16000, generator=torch.Generator().manual_seed(0)).numpy()
    codes = load_encoder(tmp_path).encode(noise)
    frames = -(-16000 // load_codec(tmp_path).hop_length)
    assert codes.shape == (frames, num_codebooks)
    assert len(np.unique(codes)) > 20


@makers
def test_codebooks_have_a_power_of_two_entries(make: Callable[..., None], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="power of two, not 100"):
        make(tmp_path, 0, num_codebooks=2, codebook_size=100)
