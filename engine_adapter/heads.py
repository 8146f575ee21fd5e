"""The codec-slice heads: one product for all rows and streams of a step.

Only ids that can be sampled are projected. The heads are shared, so with stream
embeddings ``lm_head(h + e_s) = lm_head(h) + lm_head(e_s)``: a stream's embedding is a
constant bias per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby

import torch
from torch import Tensor, nn

from engine_adapter.spec import StreamSpec

_MAX_PADDING = 1.25  # padded over true candidates, at most, within a group


@dataclass(frozen=True)
class StreamGroup:
    """Consecutive streams whose candidates share one padded table.

    Attributes:
        first: the first stream's number.
        ids: int64 ``[streams, width]``; the candidates, padded by repeating the first.
        sizes: candidates of each stream before the padding.
        end_columns: columns of stream 0's end ids; empty if stream 0 is not in the group.
    """

    first: int
    ids: Tensor
    sizes: tuple[int, ...]
    end_columns: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Streams and width."""
        return self.ids.shape[0], self.ids.shape[1]

    @cached_property
    def padded(self) -> list[tuple[slice, int]]:
        """Neighbouring streams of the group that have padding, and the column it begins at."""
        runs = [(size, len(list(run))) for size, run in groupby(self.sizes)]
        ends = accumulate(length for _, length in runs)
        return [
            (slice(end - length, end), size)
            for (size, length), end in zip(runs, ends, strict=True)
            if size < self.shape[1]
        ]


def group_streams(spec: StreamSpec) -> list[StreamGroup]:
    """Groups neighbouring streams, as long as padding stays small."""
    lists = [spec.candidates(s) for s in range(spec.num_streams)]
    groups: list[list[int]] = []
    for stream in range(spec.num_streams):
        widened = [*groups[-1], stream] if groups else [stream]
        sizes = [len(lists[s]) for s in widened]
        if groups and max(sizes) * len(sizes) <= _MAX_PADDING * sum(sizes):
            groups[-1] = widened
        else:
            groups.append([stream])
    return [_group(spec, members, lists) for members in groups]


def _group(spec: StreamSpec, members: list[int], lists: list[list[int]]) -> StreamGroup:
    sizes = tuple(len(lists[s]) for s in members)
    width = max(sizes)
    table = [lists[s] + lists[s][:1] * (width - len(lists[s])) for s in members]
    ends = slice(0, 0)
    if members[0] == 0:
        ends = slice(sizes[0] - len(spec.audio_end_ids), sizes[0])
    return StreamGroup(members[0], torch.tensor(table, dtype=torch.int64), sizes, ends)


class CodecHeads(nn.Module):
    """Replicated head rows of every candidate of every stream, and their biases."""

    weight: Tensor
    bias: Tensor
    stream_embedding: Tensor

    def __init__(self, spec: StreamSpec, hidden_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self._spec = spec
        self.groups = group_streams(spec)
        self._ids = torch.cat([g.ids.flatten() for g in self.groups])
        for index, group in enumerate(self.groups):
            self.register_buffer(f"ids_{index}", group.ids, persistent=False)
        shape = (len(self._ids), hidden_size)
        self.weight = nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False)
        self.stream_embedding = nn.Parameter(
            torch.zeros(spec.num_streams, hidden_size, dtype=dtype), requires_grad=False
        )
        # Explicit, as vLLM makes the model's dtype the default while it is built.
        bias = torch.zeros(len(self._ids), dtype=torch.float32)
        self.register_buffer("bias", bias, persistent=False)

    def take_head(self, lm_head: Tensor) -> None:
        """Copies the candidates' rows out of the full head ``[vocab, hidden]``."""
        self.weight.data.copy_(lm_head[self._ids.to(lm_head.device)])

    def finish_loading(self) -> None:
        """Computes the biases in float32, once head and stream embedding are loaded."""
        embedding = self.stream_embedding.float().clone()
        if self._spec.head_bias == "auxiliary":
            embedding[0] = 0
        streams = torch.cat(
            [
                torch.arange(g.first, g.first + g.shape[0]).repeat_interleave(g.shape[1])
                for g in self.groups
            ]
        ).to(embedding.device)
        for rows in torch.arange(len(streams), device=streams.device).split(4096):
            products = self.weight[rows].float() * embedding[streams[rows]]
            self.bias[rows] = products.sum(-1)

    def ids(self, group: int) -> Tensor:
        """Candidate ids of a group, int64 ``[streams, width]``."""
        ids: Tensor = getattr(self, f"ids_{group}")
        return ids

    def bar_padding(self, group: int, logits: Tensor) -> None:
        """Makes padded columns -inf, in place.

        Args:
            logits: of a group, float32 ``[n, streams, width]``.
        """
        for streams, size in self.groups[group].padded:
            logits[:, streams, size:] = float("-inf")

    def forward(self, hidden: Tensor) -> list[Tensor]:
        """Logits of every candidate.

        Args:
            hidden: ``[n, hidden]``, after the final norm.

        Returns:
            Per group, float32 ``[n, streams, width]``; padded columns are finite and
            meaningless until :meth:`bar_padding`.
        """
        flat = nn.functional.linear(hidden, self.weight).float()
        flat += self.bias
        parts = flat.split([g.ids.numel() for g in self.groups], dim=-1)
        return [p.unflatten(-1, g.shape) for p, g in zip(parts, self.groups, strict=True)]
