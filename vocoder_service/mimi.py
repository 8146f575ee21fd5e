"""Mimi: convolutions behind a transformer, at 12.5 frames a second."""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import MimiConfig

from vocoder_service.attention import TransformerConfig, WindowTransformer
from vocoder_service.checkpoint import Weights, read_safetensors
from vocoder_service.decoder import Codebooks, Codec, codebooks_used
from vocoder_service.receptive_field import ConvLayer
from vocoder_service.seanet import seanet_config, seanet_decoder, upsampling
from vocoder_service.streaming import Chain, Layer, Pointwise, State

_PARTS = ("quantizer", "upsample", "decoder_transformer", "decoder")
_LEAST_USAGE = 1e-5


class SplitCodebooks:
    """Residual quantizers side by side, each for its own share of the codebooks."""

    convolutions: Sequence[ConvLayer] = ()

    def __init__(self, groups: Sequence[Layer], sizes: Sequence[int]) -> None:
        """
        Args:
            groups: from the codes of a share to vectors.
            sizes: codebooks of each.
        """
        self._groups, self._sizes = groups, sizes

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """From int64 [batch, n, codebooks] to [batch, n, width]."""
        shares = signal.split(list(self._sizes), dim=2)
        groups = zip(self._groups, shares, strict=True)
        parts = [group.advance(share, None, last)[0] for group, share in groups]
        return torch.stack(parts).sum(dim=0), ()


def load_mimi(directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None) -> Codec:
    """Mimi; its first codebooks are the semantic ones. See ``load_codec``."""
    config: Any = MimiConfig.from_pretrained(directory)
    used = codebooks_used(config.num_quantizers, num_codebooks)
    weights = Weights(read_safetensors(directory, _PARTS), device, dtype)
    seanet = seanet_config(config, num_lstm_layers=0)
    layers: list[Layer] = [_quantizer(config, weights, used)]
    if config.frame_rate != config.encodec_frame_rate:
        width = config.hidden_size
        layers.append(
            upsampling(seanet, weights, "upsample", width, width, stride=2, depthwise=True)
        )
    transformer = WindowTransformer(_transformer_config(config))
    layers.append(weights.load(transformer, "decoder_transformer."))
    layers += seanet_decoder(seanet, weights, "decoder.layers.")
    return Codec(layers, device, config.sampling_rate, used, config.codebook_size)


def _quantizer(config: Any, weights: Weights, used: int) -> SplitCodebooks:
    size, narrow = config.codebook_size, config.codebook_dim
    hidden, width = config.vector_quantization_hidden_dimension, config.hidden_size
    semantic = min(used, config.num_semantic_quantizers)
    sizes = {"semantic": semantic, "acoustic": used - semantic}
    groups = []
    for kind, count in sizes.items():
        prefix = f"quantizer.{kind}_residual_vector_quantizer"
        tables = []
        for index in range(count):
            codebook = f"{prefix}.layers.{index}.codebook"
            usage = weights(f"{codebook}.cluster_usage", size).clamp(min=_LEAST_USAGE)
            tables.append(weights(f"{codebook}.embed_sum", size, narrow) / usage[:, None])
        group: list[Layer] = [Codebooks(tables)]
        if hidden != width:
            weight = weights(f"{prefix}.output_proj.weight", width, hidden, 1)[:, :, 0]
            group.append(Pointwise(partial(functional.linear, weight=weight)))
        if count:
            groups.append(Chain(group))
    return SplitCodebooks(groups, [count for count in sizes.values() if count])


def _transformer_config(config: Any) -> TransformerConfig:
    """
    Raises:
        ValueError: it is not as Mimi's is.
    """
    rope = config.rope_parameters
    if config.hidden_act != "gelu" or rope["rope_type"] != "default":
        raise ValueError(
            f"a Mimi with activation {config.hidden_act!r} and positions of type "
            f"{rope['rope_type']!r} cannot be served"
        )
    names = {field.name for field in fields(TransformerConfig)} - {"rope_theta"}
    shared = {name: getattr(config, name) for name in names}
    return TransformerConfig(**shared, rope_theta=rope["rope_theta"])
