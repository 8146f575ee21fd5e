"""Mimi: convolutions behind a transformer, at 12.5 frames a second."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import MimiConfig

from vocoder_service.attention import TransformerConfig, WindowTransformer
from vocoder_service.checkpoint import read_safetensors, under
from vocoder_service.seanet import SeanetConfig, Upsampling, seanet_decoder, seanet_layers
from vocoder_service.staged import Codebooks, StagedCodec, codebooks_used, seanet_config, tensor
from vocoder_service.stages import Stages

_PARTS = ("quantizer", "upsample", "decoder_transformer", "decoder")
_LEAST_USAGE = 1e-5


class SplitCodebooks(nn.Module):
    """Residual quantizers side by side, each for its own share of the codebooks."""

    def __init__(self, groups: list[Codebooks], projections: list[nn.Module]) -> None:
        super().__init__()
        self.groups, self.projections = nn.ModuleList(groups), nn.ModuleList(projections)
        self._sizes = [len(group.tables) for group in groups]

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Int64 [batch, codebooks, n] to [batch, width, n]."""
        shares = codes.split(self._sizes, dim=1)
        parts = zip(self.groups, self.projections, shares, strict=True)
        return torch.stack([project(group(share)) for group, project, share in parts]).sum(dim=0)


def load_mimi(
    directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None
) -> StagedCodec:
    """Mimi; its first codebooks are the semantic ones. See ``load_codec``."""
    config: Any = MimiConfig.from_pretrained(directory)
    used = codebooks_used(config.num_quantizers, num_codebooks)
    tensors = read_safetensors(directory, _PARTS)
    seanet = seanet_config(config, num_lstm_layers=0)
    front: list[nn.Module] = [_quantizer(config, tensors, used)]
    if config.frame_rate != config.encodec_frame_rate:
        front.append(_upsampling(config, seanet, tensors))
    transformer = WindowTransformer(_transformer_config(config))
    transformer.load_state_dict(under(tensors, "decoder_transformer."))
    decoder = seanet_decoder(seanet)
    decoder.load_state_dict(under(tensors, "decoder.layers."))
    first = nn.Sequential(*front)
    for part in (first, transformer, decoder):
        part.to(device=device, dtype=dtype).eval().requires_grad_(False)
    stages = Stages(first, seanet_layers(first), transformer, decoder, seanet_layers(decoder))
    return StagedCodec(stages, config.sampling_rate, used, config.codebook_size)


def _quantizer(config: Any, tensors: dict[str, torch.Tensor], used: int) -> SplitCodebooks:
    semantic = min(used, config.num_semantic_quantizers)
    groups: list[Codebooks] = []
    projections: list[nn.Module] = []
    for kind, size in (("semantic", semantic), ("acoustic", used - semantic)):
        if size == 0:
            continue
        prefix = f"quantizer.{kind}_residual_vector_quantizer"
        tables = []
        for index in range(size):
            codebook = f"{prefix}.layers.{index}.codebook"
            usage = tensor(tensors, f"{codebook}.cluster_usage").clamp(min=_LEAST_USAGE)
            tables.append(tensor(tensors, f"{codebook}.embed_sum") / usage[:, None])
        groups.append(Codebooks(tables))
        if config.vector_quantization_hidden_dimension == config.hidden_size:
            projections.append(nn.Identity())
        else:
            weight = tensor(tensors, f"{prefix}.output_proj.weight")
            projection = nn.Conv1d(weight.shape[1], weight.shape[0], 1, bias=False)
            projection.load_state_dict({"weight": weight})
            projections.append(projection)
    return SplitCodebooks(groups, projections)


def _upsampling(config: Any, seanet: SeanetConfig, tensors: dict[str, torch.Tensor]) -> Upsampling:
    """From frames to the rate of the transformer."""
    upsampling = Upsampling(
        seanet,
        config.hidden_size,
        config.hidden_size,
        kernel=2 * int(config.encodec_frame_rate / config.frame_rate),
        stride=2,
        groups=config.upsample_groups,
        bias=False,
    )
    upsampling.load_state_dict(under(tensors, "upsample."))
    return upsampling


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
