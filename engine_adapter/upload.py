"""Arrays of a step on their way to the device: one copy for all, which nobody waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_ALIGNMENT = 8  # bytes; of the widest of the types

Array = NDArray[Any]


def uploaded(arrays: Sequence[Array], device: torch.device) -> list[Tensor]:
    """The same values on ``device``: on CPUs the memory of the arrays itself.

    Elsewhere they share one copy out of pinned memory, which PyTorch does not give to others
    before the copy has been made.
    """
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    host = torch.empty(_size(arrays), dtype=torch.uint8, pin_memory=True)
    pack(arrays, host.numpy())
    return unpack(host.to(device, non_blocking=True), arrays)


def pack(arrays: Sequence[Array], into: NDArray[np.uint8]) -> None:
    """Writes the arrays one behind the other."""
    for array, (begin, end) in zip(arrays, _places(arrays), strict=True):
        into[begin:end] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def unpack(packed: Tensor, arrays: Sequence[Array]) -> list[Tensor]:
    """Views of what :func:`pack` wrote, as tensors of the arrays' types and shapes."""
    views = []
    for array, (begin, end) in zip(arrays, _places(arrays), strict=True):
        dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        views.append(packed[begin:end].view(dtype).view(array.shape))
    return views


def _places(arrays: Sequence[Array]) -> list[tuple[int, int]]:
    places, begin = [], 0
    for array in arrays:
        places.append((begin, begin + array.nbytes))
        begin += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return places


def _size(arrays: Sequence[Array]) -> int:
    return sum(-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays)
