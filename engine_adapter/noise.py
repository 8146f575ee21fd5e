"""Counter-based noise: a pure function of (seed, step, stream, id).

A draw depends on nothing else, so a result does not change with the batch, with a
preemption, with the device's generator or with whoever else is served. The mixing
function is the 32-bit finaliser ``lowbias32`` of Chris Wellons' hash prospector,
applied once per counter word, in 64-bit integers that hold 32-bit values. The state has
32 bits: two draws of a long request may share their noise by chance, no more.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_STEP, _STREAM, _ID = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def _mix(x: Tensor) -> Tensor:
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _MASK
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _MASK
    return x ^ (x >> 16)


def _absorb(state: Tensor, word: Tensor, constant: int) -> Tensor:
    return _mix(state ^ ((word * constant + 1) & _MASK))


def gumbel(seed: Tensor, step: Tensor, stream: Tensor, ids: Tensor) -> Tensor:
    """Standard Gumbel noise for every candidate.

    Args:
        seed: int64, 0 <= seed < 2**63.
        step: int64, rows the request has generated before this one.
        stream: int64, the stream sampled.
        ids: int64, the candidates' vocabulary ids.
            The four broadcast against each other.

    Returns:
        float32 of the broadcast shape. ``argmax(logits + noise)`` is a draw from
        ``softmax(logits)`` (the Gumbel-max trick).
    """
    state = _mix((seed & _MASK) ^ _mix((seed >> 32) ^ _STEP))
    state = _absorb(state, step, _STEP)
    state = _absorb(state, stream, _STREAM)
    bits = _absorb(state, ids, _ID)
    # 23 bits, so that the half added keeps every value exact and strictly inside (0, 1).
    uniform = ((bits >> 9).to(torch.float32) + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))
