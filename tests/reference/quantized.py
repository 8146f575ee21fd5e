"""A tiny checkpoint whose backbone was quantised with GPTQ, and one with the numbers it stands for.

Written from the description of the format (``qweight``, ``qzeros``, ``scales``, ``g_idx``): four
bits a weight, symmetric, one scale per 32 inputs of an output.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

BITS, GROUP = 4, 32
_PER_WORD = 32 // BITS
_MIDDLE = 2 ** (BITS - 1)
_CONFIG = {
    "quant_method": "gptq",
    "bits": BITS,
    "group_size": GROUP,
    "desc_act": False,
    "sym": True,
    "lm_head": False,
}


def quantize(model: Path, quantized: Path, plain: Path) -> None:
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
            parts, numbers = _quantized(tensor.float())
            layer = name.removesuffix("weight")
            stored |= {layer + part: value for part, value in parts.items()}
            meant[name] = numbers
        else:
            stored[name], meant[name] = tensor, tensor.float()
    save_file(stored, quantized / "model.safetensors", metadata={"format": "pt"})
    save_file(meant, plain / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((quantized / "config.json").read_text())
    config |= {"quantization_config": _CONFIG, "dtype": "bfloat16"}
    (quantized / "config.json").write_text(json.dumps(config))


def _quantized(weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
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


def _packed(codes: Tensor, dim: int) -> Tensor:
    """Eight codes an int32 along ``dim``, the first in the lowest bits."""
    words = codes.unflatten(dim, (-1, _PER_WORD)).movedim(dim + 1, -1)
    word = (words << (BITS * torch.arange(_PER_WORD))).sum(-1)
    return (word - ((word >> 31) << 32)).to(torch.int32).contiguous()
