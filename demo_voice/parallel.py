"""Several processes that train one model together, each on its own part of every batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

_PATIENCE = timedelta(minutes=10)  # one process compiles or validates while the others wait


@dataclass(frozen=True)
class Group:
    """The place of this process among those that train together."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls, meeting: Path, rank: int, size: int) -> Group:
        """Waits for the others.

        Args:
            meeting: a file that does not exist before, the same for all.
        """
        store = dist.FileStore(str(meeting), size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=_PATIENCE)
        return cls(rank, size)

    def leave(self) -> None:
        """Ends what ``join`` began."""
        dist.destroy_process_group()

    def share(self, parts: int) -> range:
        """Those of ``parts`` parts of a batch that are for this process."""
        return range(self.rank, parts, self.size)

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replaces the gradients by their sums over all processes.

        Raises:
            RuntimeError: another process has ended.
        """
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        for gradient, total in zip(
            gradients, flat.split([g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(total.view_as(gradient))
