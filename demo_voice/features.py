"""What the codec keeps of a frame: its spectrum, twice coarse in frequency, once fine and low."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.audio_utils import mel_filter_bank

from demo_voice.recipe import HOP, SAMPLE_RATE

MELS = 80
LOW_BINS = 48
FEATURES = 2 * MELS + LOW_BINS

_SHORT, _LONG = 512, 1024  # samples of a window
_FLOOR = 1e-2  # of a magnitude: digital silence would be minus infinity
_LOW_WEIGHT = 0.7  # the fine bins tell the pitch; at full weight they cost the words a codebook


@cache
def mel_filters(bins: int, mels: int = MELS) -> Tensor:
    """Float32 ``[bins, mels]``: a mel filter bank of unit peak (Slaney's scale)."""
    bank = mel_filter_bank(
        num_frequency_bins=bins,
        num_mel_filters=mels,
        min_frequency=0.0,
        max_frequency=SAMPLE_RATE / 2,
        sampling_rate=SAMPLE_RATE,
        norm=None,
        mel_scale="slaney",
    )
    return torch.from_numpy(bank).float()


def num_frames(samples: int) -> int:
    """Frames that hold ``samples``, the last one filled up with silence."""
    return -(-samples // HOP)


def frame_features(samples: NDArray[np.int16]) -> Tensor:
    """Float32 ``[frames, FEATURES]`` of int16 samples at 16 kHz.

    A frame of 512 samples has two mel spectra, centred on its quarters, and the lowest 48 bins
    (to 734 Hz) of a longer window centred on its middle; all as log10 of magnitudes.
    """
    frames = num_frames(len(samples))
    wave = torch.zeros(HOP + frames * HOP + HOP)
    wave[HOP : HOP + len(samples)] = torch.from_numpy(samples.astype(np.float32) / 32768)
    # Window w of the short transform is centred on sample 256 w + 128 of the speech.
    short = _magnitudes(wave[HOP - 128 :], _SHORT, HOP // 2, 2 * frames)
    long = _magnitudes(wave[HOP - 256 :], _LONG, HOP, frames)
    mel = torch.log10((short @ mel_filters(_SHORT // 2 + 1)) + _FLOOR)
    low = torch.log10(long[:, :LOW_BINS] + _FLOOR)
    return torch.cat([mel.reshape(frames, 2 * MELS), _LOW_WEIGHT * low], dim=1)


def _magnitudes(wave: Tensor, size: int, hop: int, count: int) -> Tensor:
    windows = wave.unfold(0, size, hop)[:count] * torch.hann_window(size)
    return torch.fft.rfft(windows).abs()
