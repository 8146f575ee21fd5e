"""The nearest of some vectors."""

import torch


def nearest(vectors: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """For each of ``vectors`` [n, width] the number of the nearest of ``keys`` [m, width], [n]."""
    # The squared distance, less the square of the vector, which is the same for all keys.
    distances = keys.square().sum(dim=1) - 2 * vectors @ keys.T
    return distances.argmin(dim=1)
