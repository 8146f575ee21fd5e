"""Reading only the tensors of a checkpoint that are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)

# What torch's two implementations of weight normalisation call magnitude and direction.
_WEIGHT_NORMS = (
    (".weight_g", ".weight_v"),
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
)


def read_safetensors(directory: Path, parts: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """The tensors of ``directory`` whose names begin with one of ``parts``, up to a dot.

    Raises:
        FileNotFoundError: no model*.safetensors there.
        ValueError: one is damaged.
    """
    files = sorted(directory.glob("model*.safetensors"))
    if not files:
        raise FileNotFoundError(f"no model*.safetensors in {directory}")
    tensors = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 (safe_open is not iterable)
                    if name.split(".", 1)[0] in parts:
                        tensors[name] = opened.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{file}: {error}") from error
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
            # There is a magnitude for every output, or for every place of the kernel.
            rest = tuple(d for d in range(vector.dim()) if size.shape[d] == 1)
            norm = torch.linalg.vector_norm(vector, dim=rest, keepdim=True)
            plain[stem + ".weight"] = vector * (size / norm)
    return plain


class Weights:
    """Tensors of a checkpoint by their names, each of the shape that a layer expects."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], device: str, dtype: torch.dtype
    ) -> None:
        """
        Args:
            device, dtype: what the tensors are wanted on and as.
        """
        self._tensors = tensors
        self._device, self._dtype = device, dtype
        self._taken: set[str] = set()

    def __call__(self, name: str, *shape: int) -> torch.Tensor:
        """The tensor of that name.

        Raises:
            RuntimeError: it is not there, or of another shape.
        """
        if name not in self._tensors:
            raise RuntimeError(f"Missing key in the codec's weights: {name}")
        tensor = self._tensors[name]
        if tuple(tensor.shape) != shape:
            raise RuntimeError(f"{name} must have shape {shape}, not {tuple(tensor.shape)}")
        self._taken.add(name)
        return tensor.to(device=self._device, dtype=self._dtype)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def load(self, module: ModuleT, prefix: str) -> ModuleT:
        """Gives ``module`` the tensors under ``prefix``, ready to be used.

        Raises:
            RuntimeError: they are not those of the module.
        """
        module.load_state_dict(under(self._tensors, prefix))
        self._taken.update(name for name in self._tensors if name.startswith(prefix))
        module.to(device=self._device, dtype=self._dtype).eval().requires_grad_(False)
        return module

    def check_all_taken(self, prefix: str) -> None:
        """
        Raises:
            RuntimeError: a tensor under ``prefix`` belongs to no layer.
        """
        names = (name for name in self._tensors if name.startswith(prefix))
        if left := sorted(set(names) - self._taken):
            raise RuntimeError(f"Unexpected key in the codec's weights: {left[0]}")
