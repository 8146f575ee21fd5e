"""A model that is nothing but its heads; hidden states come from the tests."""

from __future__ import annotations

import torch
from torch import Tensor

from engine_adapter.heads import CodecHeads
from engine_adapter.spec import StreamSpec

HIDDEN = 16


class PlainModel:
    """A random full head and stream embedding, and the codec-slice heads made of them."""

    def __init__(self, spec: StreamSpec, dtype: torch.dtype = torch.float32) -> None:
        generator = torch.Generator().manual_seed(0)
        self.spec = spec
        self.lm_head = torch.randn((spec.vocab_size, HIDDEN), generator=generator).to(dtype)
        embedding = torch.randn((spec.num_streams, HIDDEN), generator=generator)
        self.codec_heads = CodecHeads(spec, HIDDEN, dtype)
        self.codec_heads.stream_embedding.data.copy_(embedding)
        self.codec_heads.take_head(self.lm_head)
        self.codec_heads.finish_loading()

    def text_logits(self, hidden: Tensor) -> Tensor:
        return (hidden @ self.lm_head.T).float()


def candidate_logits(model: PlainModel, hidden: Tensor, stream: int) -> Tensor:
    """``lm_head[c] . (h + e_s)`` of the stream's candidates, float64 ``[n, candidates]``."""
    embedding = model.codec_heads.stream_embedding[stream].double()
    if stream == 0 and model.spec.head_bias == "auxiliary":
        embedding = embedding * 0
    head = model.lm_head[model.spec.candidates(stream)].double()
    return (hidden.double() + embedding) @ head.T
