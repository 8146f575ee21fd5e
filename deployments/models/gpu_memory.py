"""How an engine and its vocoder share the memory of one GPU, checked before either takes any.

A share of a GPU in Ray is a matter of placement and bounds no memory. The engine takes what
``engine.gpu_memory_utilization`` says, all of it at its start, and what its weights leave is its
KV cache. The vocoder, which also holds what hears, may take up to
``vocoder.gpu_memory_utilization``.
"""

from __future__ import annotations

import math
from pathlib import Path

from deployments.settings import (
    ENGINE_GPU_MEMORY,
    SHARED_GPU_MEMORY,
    EngineSettings,
    ModelSettings,
)
from engine_adapter.fitting import QUANTIZED_ON_LOADING
from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.safetensors_header import read_header

_GIB = 2**30
_WIDTHS = {"float32": 4, "bfloat16": 2}
_NUMBERS = ("F64", "F32", "F16", "BF16")  # as safetensors names them
_LEAST_CACHE_SHARE = 0.05  # of the device; with less, hardly a request fits
_VOCODER_WORK = _GIB // 2  # beside its weights: signals of a batch, and the device's libraries


class GpuMemoryError(ValueError):
    """The model does not fit; the message names the setting and has the numbers."""


def require_room(settings: ModelSettings, weights: int, device: int) -> None:
    """
    Args:
        weights: bytes of the model's weights as a worker of the engine holds them.
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


def require_vocoder_room(settings: ModelSettings, weights: int, device: int) -> None:
    """
    Args:
        settings: of a model whose vocoder shares the engine's GPU.
        weights: bytes of the vocoder's.
        device: bytes of the GPU's memory.

    Raises:
        GpuMemoryError: the vocoder's share does not hold them and its work.
    """
    share = settings.vocoder.gpu_memory_utilization
    has, needs = share * device, weights + _VOCODER_WORK
    if needs > has:
        most = SHARED_GPU_MEMORY - (settings.engine.gpu_memory_utilization or ENGINE_GPU_MEMORY)
        raise GpuMemoryError(
            f"vocoder.gpu_memory_utilization: {share:g} of the GPU's {device / _GIB:.1f} GiB is "
            f"{has / _GIB:.1f} GiB; codec and encoders of {settings.id} take "
            f"{weights / _GIB:.1f} GiB and their work {_VOCODER_WORK / _GIB:.1f} GiB. At least "
            f"{_share(needs / device):g} is needed, and {most:.2g} is possible beside the engine's"
        )


def weight_bytes(model: Path, engine: EngineSettings) -> int:
    """Of a model directory's weights as each worker of the engine holds them, at least.

    Numbers are held in the engine's dtype (in a byte where vLLM quantises them on loading), what is
    packed as it is. Of several workers each holds a part, and a little more that all hold.
    """
    width = 1 if engine.quantization in QUANTIZED_ON_LOADING else _WIDTHS[engine.dtype]
    total = 0
    for file in model.glob("*.safetensors"):
        for tensor in read_header(file).values():
            first, end = tensor["data_offsets"]
            number = tensor["dtype"] in _NUMBERS
            total += math.prod(tensor["shape"]) * width if number else end - first
    return total // engine.tensor_parallel_size


def vocoder_bytes(model: Path) -> int:
    """Of a model directory's codec and of all by which it hears, in float32, as they are held."""
    folders = [model / name for name in (CODEC_FOLDER, SSL_FOLDER, AUDIO_ENCODER_FOLDER)]
    tensors = [file for folder in folders for file in folder.rglob("*.safetensors")]
    published = [file for folder in folders for file in folder.rglob("*.pth")]  # are float32
    return 4 * sum(map(_elements, tensors)) + sum(file.stat().st_size for file in published)


def _elements(file: Path) -> int:
    """Of all tensors of a safetensors file, from its header."""
    return sum(math.prod(tensor["shape"]) for tensor in read_header(file).values())


def _share(needed: float) -> float:
    return math.ceil(100 * needed) / 100


def _advice(needed: float, most: float) -> str:
    if needed > most:
        return "It does not fit on this GPU"
    return f"At least {_share(needed):g} is needed, and {most:g} is possible"
