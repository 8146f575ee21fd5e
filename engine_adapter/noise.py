"""Counter-based noise: a pure function of (seed, step, stream, id).

A draw depends on nothing else, so a result does not change with the batch, with a
preemption, with the device's generator or with whoever else is served. The mixing
function is the 32-bit finaliser ``lowbias32`` of Chris Wellons' hash prospector,
applied once per counter word, in 32-bit integers that overflow. The state has 32 bits:
two draws of a long request may share their noise by chance, no more.
"""

from __future__ import annotations

import torch
from torch import Tensor

_WORD = 2**32
_STEP, _STREAM, _ID = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def _signed(word: int) -> int:
    """The int32 of the same bits, as PyTorch has no arithmetic of unsigned ones."""
    return word - _WORD if word >= _WORD // 2 else word


_FIRST, _SECOND = _signed(0x7FEB352D), _signed(0x846CA68B)


def _shifted(x: Tensor, places: int) -> Tensor:
    """Shifted right as unsigned words are: zeros follow."""
    return (x >> places) & ((_WORD - 1) >> places)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 16)) * _FIRST
    x = (x ^ _shifted(x, 15)) * _SECOND
    return x ^ _shifted(x, 16)


def _absorb(state: Tensor, word: Tensor, constant: int) -> Tensor:
    return _mix(state ^ (word.to(torch.int32) * _signed(constant) + 1))


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
    low, high = seed.to(torch.int32), (seed >> 32).to(torch.int32)
    state = _mix(low ^ _mix(high ^ _signed(_STEP)))
    state = _absorb(state, step, _STEP)
    state = _absorb(state, stream, _STREAM)
    bits = _absorb(state, ids, _ID)
    # 23 bits, so that the half added keeps every value exact and strictly inside (0, 1).
    uniform = (_shifted(bits, 9).to(torch.float32) + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))
