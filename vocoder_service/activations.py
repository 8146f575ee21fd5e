"""The activations of decoders."""

import numpy as np
import torch

from vocoder_service.streaming import Pointwise


class Snake(Pointwise):
    """A steady slope with ripples: x + sin(a x)^2 / a."""

    def __init__(self, slopes: torch.Tensor | None = None) -> None:
        """
        Args:
            slopes: a for each channel, [channels]; None: 1.
        """
        super().__init__(self._snake)
        self._slopes = slopes
        self._inverse = None if slopes is None else (slopes + 1e-9).reciprocal()

    def _snake(self, signal: torch.Tensor) -> torch.Tensor:
        if self._slopes is None or self._inverse is None:
            ripples = _sine_in_place(signal.clone())
            return torch.addcmul(signal, ripples, ripples, out=ripples)
        ripples = _sine_in_place(signal * self._slopes)
        return torch.addcmul(signal, ripples.square_(), self._inverse, out=ripples)


def _sine_in_place(signal: torch.Tensor) -> torch.Tensor:
    """NumPy's sine is as exact as PyTorch's on CPUs, and takes less than half the time."""
    if signal.dtype != torch.float32 or signal.device.type != "cpu":
        return signal.sin_()
    array = signal.numpy()
    np.sin(array, out=array)
    return signal
