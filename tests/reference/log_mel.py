"""Log-mel features, written out: frames, a Fourier transform each, triangles, a logarithm.

Whisper's: 400 samples under a Hann window every 160, centred; 128 triangles of equal area between 0
and 8000 Hz on Slaney's scale; nothing below the loudest less 8 decades.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_RATE, _WINDOW, _HOP, _BINS = 16000, 400, 160, 128

Floats = NDArray[np.float64]


def log_mel(samples: NDArray[np.float32]) -> Floats:
    """Of a clip in silence, brought to mean 0 and variance 1: ``[n]`` to ``[128, ceil(n / 160)]``.

    The clip is mirrored in front of its beginning, as silence is put only behind it.
    """
    wave = samples.astype(np.float64)
    wave = (wave - wave.mean()) / np.sqrt(wave.var() + 1e-7)
    half = _WINDOW // 2
    silent = np.concatenate([wave, np.zeros(2 * _WINDOW)])
    padded = np.concatenate([silent[half:0:-1], silent])
    count = -(-len(wave) // _HOP)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    # Two frames behind the last still hold some of the clip, and may be the loudest.
    frames = [padded[i * _HOP :][:_WINDOW] * window for i in range(count + 2)]
    power = np.abs(np.fft.rfft(frames)) ** 2
    loudness = np.log10(np.maximum(power @ _triangles().T, 1e-10)).T
    return (np.maximum(loudness, loudness.max() - 8) + 4)[:, :count] / 4


def _triangles() -> Floats:
    """``[128, 201]``: weights of the transform's frequencies in each bin."""
    corners = _hertz(np.linspace(0, _mel(8000.0), _BINS + 2))
    frequencies = np.fft.rfftfreq(_WINDOW, 1 / _RATE)
    weights = []
    for low, peak, high in zip(corners, corners[1:], corners[2:], strict=False):
        rise = (frequencies - low) / (peak - low)
        fall = (high - frequencies) / (high - peak)
        weights.append(np.maximum(0, np.minimum(rise, fall)) * 2 / (high - low))
    return np.array(weights)


def _mel(hertz: float) -> float:
    """Slaney's: 3 mel in 200 Hz up to 1000 Hz, and from there 27 mel in a factor of 6.4."""
    return 15 + np.log(hertz / 1000) * 27 / np.log(6.4) if hertz >= 1000 else hertz * 3 / 200


def _hertz(mel: Floats) -> Floats:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
