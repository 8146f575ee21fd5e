"""E-Branchformer's blocks, under the names that ESPnet gives their weights.

Each looks at a clip in two ways, by attention and by a convolution that gates, and merges them.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

_EPSILON = 1e-12

Activation = Callable[[torch.Tensor], torch.Tensor]


class BlockSizes(NamedTuple):
    """Of a block; names as in ESPnet's ``encoder_conf``."""

    output_size: int
    attention_heads: int
    cgmlp_linear_units: int
    cgmlp_conv_kernel: int
    linear_units: int
    merge_conv_kernel: int


class FeedForward(nn.Module):
    """Two linear layers."""

    def __init__(self, width: int, inner: int, activation: Activation) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self._activation = activation

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, frames, width] to the same."""
        made: torch.Tensor = self.w_2(self._activation(self.w_1(signal)))
        return made


class Attention(nn.Module):
    """Of every frame to every other one of the clip."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.linear_q, self.linear_k = nn.Linear(width, width), nn.Linear(width, width)
        self.linear_v, self.linear_out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, frames, width] to the same."""
        query, key, value = (
            linear(signal).unflatten(2, (self._heads, -1)).transpose(1, 2)
            for linear in (self.linear_q, self.linear_k, self.linear_v)
        )
        heard = functional.scaled_dot_product_attention(query, key, value)
        made: torch.Tensor = self.linear_out(heard.transpose(1, 2).flatten(2))
        return made


class _Gate(nn.Module):
    def __init__(self, inner: int, kernel: int) -> None:
        super().__init__()
        half = inner // 2
        self.norm = nn.LayerNorm(half, eps=_EPSILON)
        self.conv = nn.Conv1d(half, half, kernel, padding=(kernel - 1) // 2, groups=half)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        kept, gate = signal.chunk(2, dim=2)
        gate = self.conv(self.norm(gate).transpose(1, 2)).transpose(1, 2)
        return kept * gate


class GatingMlp(nn.Module):
    """Half of the channels, each multiplied by what a convolution makes of the other half."""

    def __init__(self, width: int, inner: int, kernel: int) -> None:
        super().__init__()
        self.channel_proj1 = nn.Sequential(nn.Linear(width, inner), nn.GELU())
        self.csgu = _Gate(inner, kernel)
        self.channel_proj2 = nn.Linear(inner // 2, width)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, frames, width] to the same."""
        made: torch.Tensor = self.channel_proj2(self.csgu(self.channel_proj1(signal)))
        return made


class Block(nn.Module):
    """A layer of the encoder."""

    def __init__(
        self, sizes: BlockSizes, activation: Activation, *, before: bool, after: bool
    ) -> None:
        """
        Args:
            activation: of the feed-forward layers.
            before: whether a feed-forward layer is in front of the branches.
            after: whether one is behind them.
        """
        super().__init__()
        width = sizes.output_size
        self.attn = Attention(width, sizes.attention_heads)
        self.cgmlp = GatingMlp(width, sizes.cgmlp_linear_units, sizes.cgmlp_conv_kernel)
        self.feed_forward = FeedForward(width, sizes.linear_units, activation) if after else None
        self.feed_forward_macaron = (
            FeedForward(width, sizes.linear_units, activation) if before else None
        )
        self.norm_ff = nn.LayerNorm(width, eps=_EPSILON) if after else None
        self.norm_ff_macaron = nn.LayerNorm(width, eps=_EPSILON) if before else None
        self.norm_mha = nn.LayerNorm(width, eps=_EPSILON)
        self.norm_mlp = nn.LayerNorm(width, eps=_EPSILON)
        self.norm_final = nn.LayerNorm(width, eps=_EPSILON)
        self.depthwise_conv_fusion = nn.Conv1d(
            2 * width,
            2 * width,
            sizes.merge_conv_kernel,
            padding=(sizes.merge_conv_kernel - 1) // 2,
            groups=2 * width,
        )
        self.merge_proj = nn.Linear(2 * width, width)
        self._share = 0.5 if before else 1.0  # of the feed-forward layers

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """[batch, frames, width] to the same."""
        if self.feed_forward_macaron is not None and self.norm_ff_macaron is not None:
            made = self.feed_forward_macaron(self.norm_ff_macaron(signal))
            signal = signal + self._share * made
        branches = torch.cat(
            [self.attn(self.norm_mha(signal)), self.cgmlp(self.norm_mlp(signal))], dim=2
        )
        around = self.depthwise_conv_fusion(branches.transpose(1, 2)).transpose(1, 2)
        signal = signal + self.merge_proj(branches + around)
        if self.feed_forward is not None and self.norm_ff is not None:
            signal = signal + self._share * self.feed_forward(self.norm_ff(signal))
        final: torch.Tensor = self.norm_final(signal)
        return final
