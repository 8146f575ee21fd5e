"""Reading only the tensors of a checkpoint that are wanted."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open

# What torch's two implementations of weight normalisation call magnitude and direction.
_WEIGHT_NORMS = (
    (".weight_g", ".weight_v"),
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
)


def read_safetensors(directory: Path, parts: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """The tensors of ``directory`` whose names begin with one of ``parts``, up to a dot.

    Raises:
        FileNotFoundError: no model*.safetensors there.
    """
    files = sorted(directory.glob("model*.safetensors"))
    if not files:
        raise FileNotFoundError(f"no model*.safetensors in {directory}")
    tensors = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 (safe_open is not iterable)
                if name.split(".", 1)[0] in parts:
                    tensors[name] = opened.get_tensor(name)
    return tensors


def under(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with ``prefix``, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def without_weight_norm(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same weights, each normalised one as the plain tensor that it stands for."""
    plain = dict(tensors)
    for magnitude, direction in _WEIGHT_NORMS:
        for name in [name for name in plain if name.endswith(magnitude)]:
            stem = name.removesuffix(magnitude)
            size, vector = plain.pop(name), plain.pop(stem + direction)
            norm = torch.linalg.vector_norm(vector, dim=(1, 2), keepdim=True)
            plain[stem + ".weight"] = vector * (size / norm)
    return plain
