"""RMS normalisation on CPUs by vLLM's own kernels.

vLLM builds them into its CPU release and yet computes norms there as six or seven small operations
of torch, which with a small model take a tenth of a step. The results differ by the rounding of
the last bit of float32.
"""

from __future__ import annotations

import torch
from torch import Tensor
from vllm import ir
from vllm.platforms import current_platform

# ruff: noqa: ARG001 (the arguments of each function are those of the operation)

_PROVIDER = "speechlm"

current_platform.import_kernels()


def use() -> None:
    """Has every norm of this process use them, where its arguments allow it."""
    for op in (ir.ops.rms_norm, ir.ops.fused_add_rms_norm):
        op.set_default([_PROVIDER, "native"])


def _supported(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    return variance_size is None and weight is not None and weight.dtype == x.dtype


def _supported_sum(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> bool:
    fits = x.is_contiguous() and x_residual.is_contiguous()
    return fits and _supported(x, weight, epsilon, variance_size)


@ir.ops.rms_norm.register_impl(_PROVIDER, supports_args=_supported)
def rms_norm(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> Tensor:
    """See ``vllm.ir.ops.rms_norm``."""
    x = x.contiguous()
    output = torch.empty_like(x)
    torch.ops._C.rms_norm(output, x, weight, epsilon)
    return output


@ir.ops.fused_add_rms_norm.register_impl(_PROVIDER, supports_args=_supported_sum, inplace=True)
def fused_add_rms_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """See ``vllm.ir.ops.fused_add_rms_norm``; ``x`` and ``x_residual`` become the result."""
    torch.ops._C.fused_add_rms_norm(x, x_residual, weight, epsilon)
    return x, x_residual
