"""docs/generation.md, "Sampling", for one row and stream, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine_adapter.noise import gumbel

CLOSE = 1e-5  # decisions closer than this are not told apart in float32


@dataclass(frozen=True)
class Row:
    """Parameters of one row."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    step: int = 0


@dataclass(frozen=True)
class Draw:
    """The id drawn, and by how much the closest decision on the way was made."""

    id: int
    margin: float


def draw_by_hand(logits: Tensor, ids: Tensor, row: Row, stream: int) -> Draw:
    """The five steps of the definition.

    Args:
        logits: ``[candidates]``, -inf where one is masked.
        ids: ``[candidates]``.
    """
    z = logits.double().numpy() / (row.temperature or 1.0)
    order = np.argsort(-z)
    z, sorted_ids = z[order], ids.numpy()[order]
    if row.temperature == 0:
        return Draw(int(sorted_ids[0]), _gap(z))
    margins = [np.inf]
    if 0 < row.top_k < len(z):
        if np.isfinite(z[row.top_k]):
            margins.append(z[row.top_k - 1] - z[row.top_k])
        z = z[: row.top_k]
    if row.top_p < 1:
        weights = np.exp(z - z[0])
        before = (weights.cumsum() - weights) / weights.sum()
        margins.append(np.abs(before - row.top_p).min())
        z = z[before < row.top_p]
    words = (torch.as_tensor(w) for w in (row.seed, row.step, stream, sorted_ids[: len(z)]))
    scores = z + gumbel(*words).double().numpy()
    return Draw(int(sorted_ids[scores.argmax()]), min(*margins, _gap(np.sort(scores)[::-1])))


def _gap(descending: np.ndarray) -> float:
    return float(descending[0] - descending[1]) if len(descending) > 1 else float("inf")
