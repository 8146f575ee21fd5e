"""Operations and transferred bytes of a step of the benchmark's model. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StepModel:
    """Sizes of a decoder with codec heads.

    Attributes:
        layer_weights: of all layers together.
        head_weights: rows of the head that audio is sampled from, times the width.
        layers, kv_width: keys (and values) of a layer for one row of a context.
        query_width: of all heads together.
        bytes_each: of a number: 4 for float32, 2 for bfloat16.
    """

    layer_weights: int
    head_weights: int
    layers: int
    kv_width: int
    query_width: int
    bytes_each: int

    @classmethod
    def of(cls, config: dict[str, Any], candidates: int, bytes_each: int) -> StepModel:
        """
        Args:
            config: of a backbone as transformers writes it, with gated feed-forward layers.
            candidates: ids that can be sampled, of all streams together.
        """
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        width = config.get("head_dim") or hidden // config["num_attention_heads"]
        query = width * config["num_attention_heads"]
        key = width * config["num_key_value_heads"]
        attention = hidden * (2 * query + 2 * key)
        feed_forward = 3 * hidden * config["intermediate_size"]
        return cls(
            layer_weights=layers * (attention + feed_forward),
            head_weights=hidden * candidates,
            layers=layers,
            kv_width=key,
            query_width=query,
            bytes_each=bytes_each,
        )

    def flops(self, rows: int, sampled: int, context: float) -> float:
        """Of a step: two for each weight and row, and for each query's and context row's element,
        once for the scores and once for the values.

        Args:
            sampled: rows that go through the heads.
            context: rows that each row attends to, on average.
        """
        products = 2 * (rows * self.layer_weights + sampled * self.head_weights)
        return products + 4 * rows * context * self.layers * self.query_width

    def transferred(self, rows: int, context: float) -> float:
        """Bytes a step cannot do without: every weight once, every context's keys and values."""
        weights = self.layer_weights + self.head_weights
        kept = rows * context * self.layers * 2 * self.kv_width
        return self.bytes_each * (weights + kept)
