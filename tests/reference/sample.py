"""Logits to one id (docs/generation.md, "Sampling")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine_adapter.noise import gumbel


@dataclass(frozen=True)
class Sampling:
    """Parameters of one modality; ``top_k`` 0 and ``top_p`` 1 switch the filter off."""

    temperature: float
    top_k: int
    top_p: float


@dataclass(frozen=True)
class Draw:
    """One decision.

    Attributes:
        index: of the winner among the candidates.
        scores: float32 ``[C]``, what the winner has the largest of among the kept
            candidates: noisy scaled logits, or the logits if greedy.
        kept: bool ``[C]``, the candidates that passed the filters.
    """

    index: int
    scores: Tensor
    kept: Tensor


def draw(
    logits: Tensor, ids: Tensor, sampling: Sampling, seed: int, step: int, stream: int
) -> Draw:
    """Samples one of the candidates.

    Args:
        logits: float32 ``[C]``, of the allowed candidates only.
        ids: int64 ``[C]``, their vocabulary ids.
        sampling: the parameters.
        seed: of the request.
        step: rows the request has generated before this one.
        stream: the stream sampled.
    """
    kept = torch.ones_like(logits, dtype=torch.bool)
    if sampling.temperature == 0:
        return Draw(int(logits.argmax()), logits, kept)
    z = logits / sampling.temperature
    if 0 < sampling.top_k < len(z):
        kept[:] = False
        kept[z.topk(sampling.top_k).indices] = True
    if sampling.top_p < 1:
        candidates = kept.nonzero()[:, 0]
        descending = z[candidates].argsort(descending=True, stable=True)
        candidates = candidates[descending]
        probability = z[candidates].softmax(0)
        before = probability.cumsum(0).roll(1)
        before[0] = 0
        kept[candidates[before >= sampling.top_p]] = False
    noise = gumbel(torch.tensor(seed), torch.tensor(step), torch.tensor(stream), ids)
    scores = z + noise
    return Draw(int(scores.where(kept, float("-inf")).argmax()), scores, kept)
