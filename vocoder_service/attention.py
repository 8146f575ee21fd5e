"""Mimi's transformer, read piece by piece.

Every position hears the last ``window`` positions of the layer below, so what a stream must
remember is the keys and values of ``window`` - 1 positions of every layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from vocoder_service.receptive_field import ConvLayer
from vocoder_service.streaming import State


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes, under the names of Mimi's configuration."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    sliding_window: int
    norm_eps: float
    attention_bias: bool
    rope_theta: float


class _Places(NamedTuple):
    """Where the positions of a batch are."""

    cos: torch.Tensor
    sin: torch.Tensor
    """Rotations, both [batch, 1, positions, head_dim]."""
    mask: torch.Tensor
    """Who hears whom: bool [batch, 1, positions, past + positions]."""


class WindowTransformer(nn.Module):
    """A state is rotated keys, and values, [batch, 2, layers, heads, window - 1, head_dim], of
    which the last are known, and the number of positions so far, [batch].
    """

    convolutions: Sequence[ConvLayer] = ()

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self._config = config
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """See ``vocoder_service.streaming.Layer.advance``."""
        memory, begins = self._at_start(signal) if before is None else before
        assert isinstance(memory, torch.Tensor)
        assert isinstance(begins, torch.Tensor)
        length = signal.shape[1]
        places = self._places(begins, memory.shape[4], length, signal)
        heard = []
        for index, layer in enumerate(self.layers):
            signal, keys, values = layer(signal, memory[:, 0, index], memory[:, 1, index], places)
            heard.append(torch.stack([keys[:, :, length:], values[:, :, length:]], dim=1))
        return signal, (torch.stack(heard, dim=2), begins + length)

    def _at_start(self, signal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        config = self._config
        memory = signal.new_zeros(
            len(signal),
            2,
            config.num_hidden_layers,
            config.num_key_value_heads,
            config.sliding_window - 1,
            config.head_dim,
        )
        return memory, torch.zeros(len(signal), dtype=torch.int64, device=signal.device)

    def _places(self, begins: torch.Tensor, past: int, length: int, like: torch.Tensor) -> _Places:
        """``past`` positions, the last ``begins`` of which are known, stand before ``length``."""
        device = like.device
        query = torch.arange(length, device=device)[:, None]
        key = torch.arange(-past, length, device=device)
        near = (key <= query) & (key > query - self._config.sliding_window)
        mask = near & (key >= -begins[:, None, None])

        size = self._config.head_dim
        powers = torch.arange(0, size, 2, dtype=torch.float32, device=device) / size
        positions = (begins[:, None] + query[:, 0])[..., None].float()
        angles = positions / self._config.rope_theta**powers
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        return _Places(angles.cos().to(like.dtype), angles.sin().to(like.dtype), mask[:, None])


class _Layer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.input_layernorm = nn.LayerNorm(width, eps=config.norm_eps)
        self.self_attn = _Attention(config)
        self.self_attn_layer_scale = _Scale(width)
        self.post_attention_layernorm = nn.LayerNorm(width, eps=config.norm_eps)
        self.mlp = _Mlp(width, config.intermediate_size)
        self.mlp_layer_scale = _Scale(width)

    def forward(
        self, hidden: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, places: _Places
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The layer above, and keys and values with the new ones behind them."""
        heard, keys, values = self.self_attn(self.input_layernorm(hidden), keys, values, places)
        hidden = hidden + self.self_attn_layer_scale(heard)
        thought = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + self.mlp_layer_scale(thought), keys, values


class _Attention(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self._head_dim = config.head_dim
        self._grouped = config.num_key_value_heads != config.num_attention_heads
        width, bias = config.hidden_size, config.attention_bias
        queries = config.num_attention_heads * config.head_dim
        others = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(width, queries, bias=bias)
        self.k_proj = nn.Linear(width, others, bias=bias)
        self.v_proj = nn.Linear(width, others, bias=bias)
        self.o_proj = nn.Linear(queries, width, bias=bias)

    def forward(
        self, hidden: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, places: _Places
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        query = _rotate(self._heads(self.q_proj(hidden)), places)
        keys = torch.cat([keys, _rotate(self._heads(self.k_proj(hidden)), places)], dim=2)
        values = torch.cat([values, self._heads(self.v_proj(hidden))], dim=2)
        heard = scaled_dot_product_attention(
            query, keys, values, attn_mask=places.mask, enable_gqa=self._grouped
        )
        return self.o_proj(heard.transpose(1, 2).flatten(2)), keys, values

    def _heads(self, projected: torch.Tensor) -> torch.Tensor:
        """[batch, n, heads * head_dim] to [batch, heads, n, head_dim]."""
        return projected.unflatten(2, (-1, self._head_dim)).transpose(1, 2)


class _Mlp(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner, bias=False)
        self.fc2 = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.fc2(nn.functional.gelu(self.fc1(hidden)))
        return result


class _Scale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.scale * hidden


def _rotate(heads: torch.Tensor, places: _Places) -> torch.Tensor:
    """Rotary embedding: the two halves of a head are the two coordinates that turn."""
    first, second = heads.chunk(2, dim=-1)
    return heads * places.cos + torch.cat([-second, first], dim=-1) * places.sin
