"""ESPnet's DAC encodes as its description says, from the files that ESPnet publishes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.unit.vocoder import espnet_dac
from vocoder_service.codec import load_codec
from vocoder_service.encoder import load_encoder
from vocoder_service.espnet_encoder import EspnetEncoder

HOP = 320


def noise(samples: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(samples) / 10).astype(np.float32)


def encoder(directory: Path, num_codebooks: int | None = None) -> EspnetEncoder:
    loaded = load_encoder(directory, num_codebooks=num_codebooks)
    assert isinstance(loaded, EspnetEncoder)
    return loaded


def test_it_describes_itself(espnet_directory: Path) -> None:
    loaded = encoder(espnet_directory)
    assert (loaded.sample_rate, loaded.hop_length, loaded.num_codebooks) == (16000, HOP, 8)
    assert loaded.limits == (HOP, None)


@pytest.mark.parametrize("codebook_dim", [espnet_dac.HIDDEN, 4])
@pytest.mark.parametrize("frames", [1, 2, 3, 40])
def test_it_encodes_as_an_independent_encoder_does(
    frames: int, codebook_dim: int, tmp_path: Path
) -> None:
    tensors = espnet_dac.write(tmp_path, seed=1, codebook_dim=codebook_dim)
    samples = noise(HOP * frames)
    codes = encoder(tmp_path).encode(samples)
    expected = espnet_dac.encode(tensors, torch.from_numpy(samples))
    assert codes.tolist() == expected.T.tolist()
    if frames == 40:  # and not always the same
        assert min(len(np.unique(stream)) for stream in codes.T) > 2


def test_a_clip_is_filled_up_with_silence(espnet_directory: Path) -> None:
    loaded = encoder(espnet_directory)
    clip = noise(3 * HOP + 5)
    codes = loaded.encode(clip)
    assert codes.shape == (4, 8)
    assert np.array_equal(codes, loaded.encode(np.pad(clip, (0, HOP - 5))))


def test_fewer_codebooks_are_the_first_streams(espnet_directory: Path) -> None:
    clip = noise(10 * HOP)
    few = encoder(espnet_directory, num_codebooks=3).encode(clip)
    assert np.array_equal(few, encoder(espnet_directory).encode(clip)[:, :3])
    with pytest.raises(ValueError, match="1 to 8 codebooks, not 9"):
        encoder(espnet_directory, num_codebooks=9)


def test_each_codebook_brings_the_sum_nearer(tmp_path: Path) -> None:
    """Where they become finer, as trained ones do; a decoder adds up what an encoder took away."""
    tensors = espnet_dac.write(tmp_path, seed=2)
    for stream in range(espnet_dac.STREAMS):
        tensors[f"codec.generator.quantizer.vq.layers.{stream}._codebook.embed"] /= 1.5**stream
    (weights,) = tmp_path.rglob("*.pth")
    torch.save(tensors, weights)
    clip = noise(20 * HOP)
    waves = []
    for books in (1, 4, 8):
        codes = torch.from_numpy(encoder(tmp_path, books).encode(clip).T.astype(np.int64))
        waves.append(load_codec(tmp_path, num_codebooks=books).decode(codes[None]))
    assert (waves[1] - waves[2]).norm() < (waves[0] - waves[2]).norm()


def learned_slopes(tensors: espnet_dac.Tensors, half: str) -> None:
    """As newer releases of ESPnet have them."""
    prefix = f"codec.generator.{half}.model."
    activations = {
        name.replace(".block.1.conv.conv.bias", f".block.{number}.alpha")
        for name in tensors
        if name.startswith(prefix) and name.endswith(".block.1.conv.conv.bias")
        for number in (0, 2)
    }
    for index, name in enumerate(sorted(activations)):
        tensors[name] = torch.full((1, 1, 1), 0.5 + 0.1 * index)


@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_slopes_that_were_learned_are_used(half: str, tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=3)
    samples = noise(20 * HOP)
    clip, codes = torch.from_numpy(samples), torch.randint(espnet_dac.CODES, (1, 8, 20))

    def made(encode: Callable[[], np.ndarray], decode: Callable[[], torch.Tensor]) -> np.ndarray:
        return encode() if half == "encoder" else decode().numpy()

    def by_hand() -> np.ndarray:
        return made(
            lambda: espnet_dac.encode(tensors, clip).T.numpy(),
            lambda: espnet_dac.decode(tensors, codes),
        )

    before = by_hand()
    learned_slopes(tensors, half)
    (weights,) = tmp_path.rglob("*.pth")
    torch.save(tensors, weights)
    after = made(
        lambda: encoder(tmp_path).encode(samples), lambda: load_codec(tmp_path).decode(codes)
    )
    assert np.allclose(after, by_hand(), rtol=0, atol=1e-6)
    assert not np.allclose(after, before, rtol=0, atol=1e-3)


def test_weights_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    tensors = espnet_dac.write(tmp_path, seed=7)
    (weights,) = tmp_path.rglob("*.pth")
    for missing in (
        "encoder.model.0.conv.conv.bias",
        "encoder.model.5.conv.conv.weight_v",
        "encoder.model.21.lstm.weight_ih_l1",
    ):
        kept = {name: value for name, value in tensors.items() if not name.endswith(missing)}
        assert len(kept) == len(tensors) - 1
        torch.save(kept, weights)
        load_codec(tmp_path)  # has nothing to do with it
        with pytest.raises((RuntimeError, KeyError), match=r"Missing key|weight_v"):
            load_encoder(tmp_path)
    torch.save(tensors | {"codec.generator.encoder.model.99.bias": torch.zeros(1)}, weights)
    with pytest.raises(RuntimeError, match=r"Unexpected key.*99\.bias"):
        load_encoder(tmp_path)
