"""What a backbone reads: each row the sum of its streams' embeddings, or an embedding given."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine_adapter.embedded import EmbeddedRows
from engine_adapter.spec import StreamSpec
from engine_adapter.upload import uploaded


class InputRows(nn.Module):
    """Makes the rows of a step, at an address that never changes.

    vLLM compiles a backbone's body, and where it cuts that into pieces, the CUDA graph of the
    first piece reads its input where it stood when the graph was captured. For the same reason
    the auxiliary ids, and rows that are embeddings, are put into buffers before the forward
    pass, which then needs no arguments but vLLM's own.
    """

    auxiliary_ids: Tensor
    silent_rows: Tensor
    rows: Tensor
    given: Tensor
    is_given: Tensor

    def __init__(
        self, spec: StreamSpec, hidden_size: int, dtype: torch.dtype, max_tokens: int
    ) -> None:
        """
        Args:
            max_tokens: of a step.
        """
        super().__init__()
        self._hears = spec.hears_embeddings
        self._first, count = auxiliary_range(spec)
        self.embedding = nn.Parameter(
            torch.zeros(1 + count, hidden_size, dtype=dtype), requires_grad=False
        )
        self._padding_row = 0 if spec.pad_embedding == "zero" else None
        ids = torch.zeros(max_tokens, spec.num_streams - 1, dtype=torch.int32)
        rows = torch.zeros(max_tokens, hidden_size, dtype=dtype)
        self.register_buffer("silent_rows", _silent_rows(spec), persistent=False)
        self.register_buffer("auxiliary_ids", ids, persistent=False)
        self.register_buffer("rows", rows, persistent=False)
        if self._hears:
            is_given = torch.zeros(max_tokens, 1, dtype=torch.bool)
            self.register_buffer("given", torch.zeros_like(rows), persistent=False)
            self.register_buffer("is_given", is_given, persistent=False)
        self._any_given = False

    def take_embedding(self, table: Tensor) -> None:
        """Copies the rows of auxiliary streams out of the full embedding ``[vocab, hidden]``."""
        own = self.embedding.data
        own[0] = table[0]
        own[1:] = table[self._first : self._first + len(own) - 1]

    def put(self, ids: NDArray[np.int32], tokens: int, given: EmbeddedRows | None) -> None:
        """Says what the next step reads beside stream 0.

        Args:
            ids: of the auxiliary streams, int32 ``[n, streams - 1]``.
            tokens: of the step, padding included.
            given: rows that are embeddings; None: none is.
        """
        device = self.auxiliary_ids.device
        (there,) = uploaded([ids], device)
        self.auxiliary_ids[: len(ids)].copy_(there)
        self.auxiliary_ids[len(ids) : tokens].zero_()
        if self._any_given:
            self.is_given.zero_()
        self._any_given = given is not None
        if given is not None:
            places, rows = uploaded([given.positions.astype(np.int64), given.embeddings], device)
            self.given[places] = rows.to(self.given.dtype)
            self.is_given[places] = True

    def forward(self, primary: Tensor) -> Tensor:
        """The rows ``[n, hidden]``, which hold until the next call.

        Args:
            primary: embeddings of stream 0, ``[n, hidden]``.
        """
        tokens = len(primary)
        rows = self.rows[:tokens]
        if self.auxiliary_ids.shape[1]:
            torch.add(primary, self._auxiliary(tokens), out=rows)
        else:
            rows.copy_(primary)
        if self._hears:
            torch.where(self.is_given[:tokens], self.given[:tokens], rows, out=rows)
        return rows

    def _auxiliary(self, tokens: int) -> Tensor:
        ids = self.auxiliary_ids[:tokens]
        rows = torch.where(ids == 0, self.silent_rows, ids - (self._first - 1))
        return nn.functional.embedding_bag(
            rows, self.embedding, mode="sum", padding_idx=self._padding_row
        )


def _silent_rows(spec: StreamSpec) -> Tensor:
    """Per auxiliary stream, the row of the embedding that id 0 stands for."""
    first, _ = auxiliary_range(spec)
    pads = [s.pad_id if spec.pad_embedding == "pad" else 0 for s in spec.streams[1:]]
    return torch.tensor([pad and pad - (first - 1) for pad in pads], dtype=torch.int32)


def auxiliary_range(spec: StreamSpec) -> tuple[int, int]:
    """First id and number of ids that streams 1 and up may hold, 0 aside."""
    ids = [i for s in spec.streams[1:] for i in (s.first_id, s.end - 1, s.pad_id) if i != 0]
    return (min(ids), max(ids) - min(ids) + 1) if ids else (1, 0)
