"""Time on a device, and the most it can do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from bench.sizing import DEVICES, Device

_SIZE = 1024  # of the matrices on a CPU; a GPU has larger ones
_GPU_SIZE = 8192
_COPIED = 2**28  # bytes; beyond every cache
_ROUNDS = 5


def synchronize(device: str) -> None:
    """Waits until the device has done all it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def milliseconds(
    work: Callable[[], object], device: str, *, calls: int = 1, rounds: int = _ROUNDS
) -> float:
    """What one call takes: the fastest of several rounds, each of ``calls`` calls. What disturbs a
    measurement only adds to it.

    On a GPU by its own events, so that the host's launches count only where they are what the
    device waits for.
    """
    work()  # what is done only once is not measured
    return min(_round(work, device, calls) for _ in range(rounds)) / calls


def _round(work: Callable[[], object], device: str, calls: int) -> float:
    if device == "cuda":
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        began.record()
        for _ in range(calls):
            work()
        ended.record()
        torch.cuda.synchronize()
        elapsed: float = began.elapsed_time(ended)
        return elapsed
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return 1000 * (time.perf_counter() - start)


@dataclass(frozen=True)
class Peak:
    """The most a device does; measured here, or of its data sheet.

    Attributes:
        flops: floating point operations per second of a matrix product.
        bandwidth: bytes per second, read and written together.
        source: where the figures are from.
    """

    flops: float
    bandwidth: float
    source: str

    def seconds(self, flops: float, transferred: float) -> float:
        """The roofline: the least time of so many operations and transferred bytes."""
        return max(flops / self.flops, transferred / self.bandwidth)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def measured_peak(device: str, dtype: torch.dtype) -> Peak:
    """A large matrix product, and a copy of more than any cache holds, with torch's threads."""
    size = _GPU_SIZE if device == "cuda" else _SIZE
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    product = milliseconds(lambda: left @ right, device, calls=4)
    source = torch.ones(_COPIED // 4, device=device)
    target = torch.empty_like(source)
    copy = milliseconds(lambda: target.copy_(source), device)
    return Peak(
        flops=2 * size**3 / (product / 1000),
        bandwidth=2 * _COPIED / (copy / 1000),
        source=f"measured: a product of {size} x {size} matrices in {str(dtype)[6:]}, a copy of "
        f"{_COPIED // 2**20} MiB",
    )


def peak_of(device: str, dtype: torch.dtype) -> Peak:
    """A known GPU's data sheet for bfloat16, else what is measured."""
    if device == "cuda" and dtype == torch.bfloat16:
        known = data_sheet(torch.cuda.get_device_name())
        if known is not None:
            return Peak(known.flops, known.bandwidth, f"data sheet of {known.name}")
    return measured_peak(device, dtype)


def data_sheet(name: str) -> Device | None:
    """The GPU of that name as the driver writes it, e.g. ``NVIDIA H200``."""
    return next((d for d in DEVICES if d.name.split()[0] in name.split()), None)
