"""How an engine and its vocoder share the memory of one GPU, checked before either takes any.

A share of a GPU in Ray is a matter of placement and bounds no memory. The engine takes what
``engine.gpu_memory_utilization`` says, all of it at its start, and what its weights leave is its
KV cache. The vocoder may take up to ``vocoder.gpu_memory_utilization``.
"""

from __future__ import annotations

import math
from pathlib import Path

from deployments.settings import ENGINE_GPU_MEMORY, SHARED_GPU_MEMORY, ModelSettings

_GIB = 2**30
_LEAST_CACHE_SHARE = 0.05  # of the device; with less, hardly a request fits


class GpuMemoryError(ValueError):
    """The model does not fit; the message names the setting and has the numbers."""


def require_room(settings: ModelSettings, weights: int, device: int) -> None:
    """
    Args:
        weights: bytes of the model's weights as the engine holds them.
        device: bytes of the GPU's memory.

    Raises:
        GpuMemoryError: the engine's share does not hold its weights and a KV cache.
    """
    share = settings.engine.gpu_memory_utilization or ENGINE_GPU_MEMORY
    has, needs = share * device, weights + _LEAST_CACHE_SHARE * device
    if needs > has:
        most = SHARED_GPU_MEMORY
        if settings.shares_gpu:
            most -= settings.vocoder.gpu_memory_utilization
        raise GpuMemoryError(
            f"engine.gpu_memory_utilization: {share:g} of the GPU's {device / _GIB:.1f} GiB is "
            f"{has / _GIB:.1f} GiB; the weights of {settings.id} take {weights / _GIB:.1f} GiB and "
            f"the KV cache at least {_LEAST_CACHE_SHARE * device / _GIB:.1f} GiB. "
            + _advice(needs / device, most)
        )


def weight_bytes(model: Path) -> int:
    """Of the safetensors files of a model directory."""
    return sum(file.stat().st_size for file in model.glob("*.safetensors"))


def _advice(needed: float, most: float) -> str:
    if needed > most:
        return "It does not fit on this GPU"
    return f"At least {math.ceil(100 * needed) / 100:g} is needed, and {most:g} is possible"
