"""A tiny checkpoint whose backbone was quantised, and one with the numbers it stands for.

Written from the descriptions of two formats (``qweight``, ``qzeros``, ``scales``), four bits a
weight and one scale per 32 inputs of an output: GPTQ's, symmetric, and AWQ's, with a zero point.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

BITS, GROUP = 4, 32
_PER_WORD = 32 // BITS
_MIDDLE = 2 ** (BITS - 1)
_CONFIGS: dict[str, dict[str, Any]] = {
    "gptq": {"desc_act": False, "sym": True, "lm_head": False},
    "awq": {"zero_point": True, "version": "gemm"},
}
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # of the codes in a word, from its lowest bits on

Method = Literal["gptq", "awq"]


def quantize(model: Path, quantized: Path, plain: Path, method: Method) -> None:
    """
    Args:
        model: a tiny model directory.
        quantized: the same with a quantised backbone.
        plain: the same with the numbers that the quantised weights stand for.
    """
    for directory in (quantized, plain):
        shutil.copytree(model, directory)
    stored: dict[str, Tensor] = {}
    meant: dict[str, Tensor] = {}
    for name, whole in load_file(model / "model.safetensors").items():
        tensor = whole.to(torch.bfloat16)
        if name.startswith("model.layers.") and tensor.dim() == 2:
            parts, numbers = (_gptq if method == "gptq" else _awq)(tensor.float())
            layer = name.removesuffix("weight")
            stored |= {layer + part: value for part, value in parts.items()}
            meant[name] = numbers
        else:
            stored[name], meant[name] = tensor, tensor.float()
    save_file(stored, quantized / "model.safetensors", metadata={"format": "pt"})
    save_file(meant, plain / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((quantized / "config.json").read_text())
    stored_as = {"quant_method": method, "bits": BITS, "group_size": GROUP, **_CONFIGS[method]}
    config |= {"quantization_config": stored_as, "dtype": "bfloat16"}
    (quantized / "config.json").write_text(json.dumps(config))


def _gptq(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The parts of a weight ``[outputs, inputs]``, and the weight that they stand for."""
    outputs, inputs = weight.shape
    groups = weight.view(outputs, inputs // GROUP, GROUP)
    largest = groups.abs().amax(-1, keepdim=True).clamp(min=1e-3)  # some rows are all zero
    scales = (largest / (_MIDDLE - 1)).to(torch.bfloat16).float()
    steps = (groups / scales).round().clamp(-_MIDDLE, _MIDDLE - 1)
    numbers = (steps * scales).view(outputs, inputs)
    codes = (steps + _MIDDLE).to(torch.int64).view(outputs, inputs).T
    # The zero point is stored less one.
    zeros = torch.full((inputs // GROUP, outputs), _MIDDLE - 1, dtype=torch.int64)
    return {
        "qweight": _packed(codes, dim=0),
        "qzeros": _packed(zeros, dim=1),
        "scales": scales.squeeze(-1).T.to(torch.bfloat16).contiguous(),
        "g_idx": (torch.arange(inputs) // GROUP).to(torch.int32),
    }, numbers


def _awq(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    outputs, inputs = weight.shape
    groups = weight.view(outputs, inputs // GROUP, GROUP)
    low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True)
    spread = (high.clamp(min=0) - low).clamp(min=1e-3)
    scales = (spread / (2**BITS - 1)).to(torch.bfloat16).float()
    zeros = (-low / scales).round().clamp(0, 2**BITS - 1)
    codes = ((groups / scales).round() + zeros).clamp(0, 2**BITS - 1)
    numbers = ((codes - zeros) * scales).view(outputs, inputs)
    return {
        "qweight": _packed(_reordered(codes.view(outputs, inputs).T), dim=1),
        "qzeros": _packed(_reordered(zeros.squeeze(-1).T), dim=1),
        "scales": scales.squeeze(-1).T.to(torch.bfloat16).contiguous(),
    }, numbers


def _reordered(codes: Tensor) -> Tensor:
    words = codes.to(torch.int64).unflatten(1, (-1, _PER_WORD))
    return words[:, :, list(_AWQ_ORDER)].flatten(1)


def _packed(codes: Tensor, dim: int) -> Tensor:
    """Eight codes an int32 along ``dim``, the first in the lowest bits."""
    words = codes.unflatten(dim, (-1, _PER_WORD)).movedim(dim + 1, -1)
    word = (words << (BITS * torch.arange(_PER_WORD))).sum(-1)
    return (word - ((word >> 31) << 32)).to(torch.int32).contiguous()
