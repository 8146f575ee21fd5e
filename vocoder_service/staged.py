"""A codec whose decoder remembers, and what such codecs share."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import torch
from torch import nn

from vocoder_service.frames import check_frames
from vocoder_service.lstm import ResidualLstm
from vocoder_service.seanet import SeanetConfig, seanet_layers
from vocoder_service.stages import Stages


class StagedCodec:
    """A codec that decodes in stages, see ``Stages``."""

    def __init__(
        self, stages: Stages, sample_rate: int, num_codebooks: int, codebook_size: int
    ) -> None:
        self.stages = stages
        self.sample_rate = sample_rate
        self.num_codebooks = num_codebooks
        self.codebook_size = codebook_size
        self.hop_length = stages.hop_length
        self.left_context = stages.left_context
        self.right_context = stages.right_context
        self.first_frames = stages.first_frames

    def num_samples(self, frames: int) -> int:
        return frames * self.hop_length

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """See ``Codec.decode``."""
        check_codes(codes, self.num_codebooks, self.codebook_size)
        return self.stages.decode(codes)


class Codebooks(nn.Module):
    """A residual quantizer: the codes of a frame stand for the sum of their vectors."""

    def __init__(self, tables: Sequence[torch.Tensor]) -> None:
        """``tables`` are of [codebook_size, width]."""
        super().__init__()
        self.tables = nn.ParameterList(tables)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Int64 [batch, codebooks, n] to [batch, width, n]."""
        rows = zip(codes.unbind(dim=1), self.tables, strict=True)
        vectors = [nn.functional.embedding(row, table) for row, table in rows]
        return torch.stack(vectors).sum(dim=0).transpose(1, 2)


def stages_around_lstm(
    quantizer: nn.Module, decoder: nn.Sequential, device: str, dtype: torch.dtype
) -> Stages:
    """``decoder``, cut at its LSTM, behind ``quantizer``."""
    first, middle, *rest = decoder
    lstm = cast(ResidualLstm, middle)
    front, back = nn.Sequential(quantizer, first), nn.Sequential(*rest)
    for part in (front, lstm, back):
        part.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return Stages(front, seanet_layers(front), lstm, back, seanet_layers(back))


def seanet_config(config: Any, num_lstm_layers: int) -> SeanetConfig:
    """Of a configuration of transformers that has the same names."""
    names = {field.name for field in fields(SeanetConfig)} - {"num_lstm_layers", "snake"}
    shared = {name: getattr(config, name) for name in names}
    return SeanetConfig(**shared, num_lstm_layers=num_lstm_layers)


def codebooks_used(available: int, wanted: int | None) -> int:
    """How many codebooks to serve.

    Raises:
        ValueError: ``wanted`` is not among 1 .. ``available``.
    """
    if wanted is not None and not 1 <= wanted <= available:
        raise ValueError(f"the codec has 1 to {available} codebooks, not {wanted}")
    return wanted or available


def tensor(tensors: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """One of ``tensors``.

    Raises:
        RuntimeError: it is not there.
    """
    if name not in tensors:
        raise RuntimeError(f"Missing key in the codec's weights: {name}")
    return tensors[name]


def check_codes(codes: torch.Tensor, num_codebooks: int, codebook_size: int) -> None:
    """Check int64 ``codes`` [batch, num_codebooks, n].

    Raises:
        ValueError: see ``check_frames``.
    """
    rows = codes.transpose(1, 2).flatten(0, 1).cpu().numpy()
    check_frames(rows, num_codebooks, codebook_size)
