"""The same model as a plain PyTorch loop: one request at a time, with a KV cache.

It is what one would write without a server: the body is transformers', the heads are sliced
to the ids that can be sampled, and a guided request is a batch of its two contexts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, DynamicCache

from engine_adapter.checkpoint import STREAM_EMBEDDING, ModelDirectory


class SequentialModel:
    """A model directory in memory; its streams must all have the same number of codes."""

    def __init__(self, directory: Path, dtype: str) -> None:
        """Loads the weights in ``dtype``, ``float32`` or ``bfloat16``."""
        files = ModelDirectory.open(directory)
        self.spec = spec = files.spec
        self._sampling = spec.sampling["audio"]
        weights = {name: w.to(getattr(torch, dtype)) for name, w in files.tensors()}
        streams, head = weights.pop(STREAM_EMBEDDING), weights.pop("lm_head.weight", None)
        if spec.head_bias == "auxiliary":
            streams[0] = 0
        config = {k: v for k, v in files.config.items() if k not in ("model_type", "dtype")}
        self._body: nn.Module = AutoModel.from_config(
            AutoConfig.for_model(files.config["model_type"], **config),
            dtype=getattr(torch, dtype),
            attn_implementation="sdpa",
        ).eval()
        self._body.load_state_dict({k.removeprefix("model."): w for k, w in weights.items()})
        self._embedding: Tensor = self._body.get_input_embeddings().weight
        head = self._embedding if head is None else head  # None: they are tied
        codes = [head[s.first_id : s.end] for s in spec.streams]
        self._heads = torch.cat(codes)
        self._bias = torch.cat([c @ e for c, e in zip(codes, streams, strict=True)])
        self._first_ids = torch.tensor([s.first_id for s in spec.streams])
        self._delays = torch.tensor(spec.delays)
        self._pads = torch.tensor([s.pad_id for s in spec.streams])

    @torch.inference_mode()
    def generate(self, contexts: Sequence[Sequence[int]], scale: float) -> Iterator[Tensor]:
        """Yields audio rows, int64 ``[streams]``, for as long as it is asked.

        Args:
            contexts: stream-0 ids of the prompt; for guidance of the conditional and the
                unconditional prompt, equally long.
            scale: of the guidance; without effect for one context.
        """
        cache = DynamicCache()
        prompt = torch.tensor(contexts)[..., None]
        silence = torch.zeros(*prompt.shape[:2], self.spec.num_streams - 1, dtype=torch.int64)
        self._forward(self._embed(torch.cat([prompt, silence], -1)), cache)
        row = torch.zeros(self.spec.num_streams, dtype=torch.int64)
        row[0] = self.spec.audio_begin
        for t in itertools.count():
            hidden = self._forward(self._embed(row).expand(len(contexts), 1, -1), cache)
            logits = nn.functional.linear(hidden, self._heads, self._bias).float()
            if len(contexts) == 2:
                logits = scale * logits[:1] + (1 - scale) * logits[1:]
            drawn = self._draw(logits.view(self.spec.num_streams, -1))
            row = torch.where(t < self._delays, self._pads, self._first_ids + drawn)
            yield row

    def _embed(self, rows: Tensor) -> Tensor:
        """Input embeddings of rows ``[..., streams]``, ``[..., hidden]``."""
        silent = rows == 0
        silent[..., 0] = False
        if self.spec.pad_embedding == "pad":
            rows = torch.where(silent, self._pads, rows)
        embedded = self._embedding[rows]
        if self.spec.pad_embedding == "zero":
            embedded[silent] = 0
        return embedded.sum(-2)

    def _forward(self, embedded: Tensor, cache: DynamicCache) -> Tensor:
        output = self._body(inputs_embeds=embedded, past_key_values=cache, use_cache=True)
        hidden: Tensor = output.last_hidden_state[:, -1]
        return hidden

    def _draw(self, logits: Tensor) -> Tensor:
        """One code per stream from ``[streams, codes]``."""
        kept, places = logits.div_(self._sampling.temperature).topk(self._sampling.top_k)
        return places.gather(1, kept.softmax(-1).multinomial(1)).squeeze(1)
