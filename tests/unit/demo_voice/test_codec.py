"""Features, quantizer and the losses of the decoder's training."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from demo_voice import quantizer
from demo_voice.codec import spectral_loss
from demo_voice.features import FEATURES, LOW_BINS, MELS, frame_features, mel_filters, num_frames
from demo_voice.recipe import HOP, SAMPLE_RATE, CodecRecipe

SMALL = CodecRecipe(codebooks=4, codebook_size=32, code_dim=8, width=32)


def tone(hertz: float, samples: int) -> np.ndarray:
    wave = 8000 * np.sin(2 * np.pi * hertz * np.arange(samples) / SAMPLE_RATE)
    return wave.astype(np.int16)


@pytest.mark.parametrize("samples", [1, HOP - 1, HOP, HOP + 1, 10 * HOP, 10 * HOP + 7])
def test_frames_hold_all_samples(samples: int) -> None:
    features = frame_features(tone(300, samples))
    assert features.shape == (num_frames(samples), FEATURES)
    assert num_frames(samples) * HOP >= samples > (num_frames(samples) - 1) * HOP
    assert features.isfinite().all()


def test_a_tone_is_loudest_where_it_belongs() -> None:
    features = frame_features(tone(500, 20 * HOP))[10]
    low = features[2 * MELS :]
    assert int(low.argmax()) == round(500 / (SAMPLE_RATE / 1024))
    expected = int(mel_filters(257)[500 * 512 // SAMPLE_RATE].argmax())
    assert abs(int(features[:MELS].argmax()) - expected) <= 1
    assert abs(int(features[MELS : 2 * MELS].argmax()) - expected) <= 1
    assert len(low) == LOW_BINS


def test_a_frame_says_when_in_it_a_sound_begins() -> None:
    """A click in the second half of a frame is louder in its second mel spectrum."""
    samples = np.zeros(4 * HOP, dtype=np.int16)
    samples[2 * HOP + 3 * HOP // 4] = 30_000
    frame = frame_features(samples)[2]
    assert frame[MELS : 2 * MELS].mean() > frame[:MELS].mean() + 0.3


def correlated(frames: int) -> Tensor:
    """Features on a subspace of ten dimensions, with a mean and a little noise."""
    generator = torch.Generator().manual_seed(3)
    axes = torch.randn(10, FEATURES, generator=generator)
    noise = 0.01 * torch.randn(frames, FEATURES, generator=generator)
    return torch.randn(frames, 10, generator=generator) @ axes + noise - 1.0


def test_every_codebook_takes_away_some_of_what_is_left() -> None:
    features = correlated(2000)
    fitted = quantizer.fit(features, SMALL, seed=1)
    codes = quantizer.encode(fitted, features)
    assert codes.shape == (2000, 4)
    assert codes.min() >= 0
    assert codes.max() < SMALL.codebook_size
    variance = (features - features.mean(0)).square().mean()
    left = [variance]
    for books in range(1, 5):
        decoded = fitted.from_codes(codes[:, :books].T[None])[0][0].T
        left.append((features - decoded).square().mean())
    assert all(after < 0.8 * before for before, after in itertools.pairwise(left))


def test_the_look_up_by_angle_finds_the_nearest_point() -> None:
    features = correlated(2000)
    fitted = quantizer.fit(features, SMALL, seed=1)
    stage = fitted.quantizers[0]
    points = stage.in_proj(features.T[None])[0].T
    nearest = torch.cdist(points, stage.codebook.weight).argmin(1)
    chosen = quantizer.encode(fitted, features)[:, 0]
    assert (nearest == chosen).float().mean() > 0.97


def test_all_codes_are_used() -> None:
    features = correlated(2000)
    codes = quantizer.encode(quantizer.fit(features, SMALL, seed=1), features)
    assert [len(codes[:, book].unique()) for book in range(4)] == [SMALL.codebook_size] * 4


def test_the_spectral_loss_knows_equal_from_louder_and_from_another_pitch() -> None:
    one = torch.from_numpy(tone(200, 4096).astype(np.float32) / 32768)[None]
    other = torch.from_numpy(tone(260, 4096).astype(np.float32) / 32768)[None]
    assert float(spectral_loss(one, one)) == 0
    louder, pitch = float(spectral_loss(1.1 * one, one)), float(spectral_loss(other, one))
    assert 0 < louder < pitch
