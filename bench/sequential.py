"""The same model as a plain PyTorch loop with a KV cache: one request, or a batch of them.

It is what one would write without a server: the body is transformers', the heads are sliced
to the ids that can be sampled, and a guided request is a batch of its two contexts. A batch is
static, as ``transformers``' own generation: all its requests begin and end together.
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

    def __init__(self, directory: Path, dtype: str, device: str = "cpu") -> None:
        """Loads the weights in ``dtype``, ``float32`` or ``bfloat16``."""
        self._device = device
        files = ModelDirectory.open(directory)
        self.spec = spec = files.spec
        self._sampling = spec.sampling["audio"]
        weights = {name: w.to(device, getattr(torch, dtype)) for name, w in files.tensors()}
        streams, head = weights.pop(STREAM_EMBEDDING), weights.pop("lm_head.weight", None)
        if spec.head_bias == "auxiliary":
            streams[0] = 0
        config = {k: v for k, v in files.config.items() if k not in ("model_type", "dtype")}
        self._body: nn.Module = AutoModel.from_config(
            AutoConfig.for_model(files.config["model_type"], **config),
            dtype=getattr(torch, dtype),
            attn_implementation="sdpa",
        ).eval()
        self._body.to(device)
        self._body.load_state_dict({k.removeprefix("model."): w for k, w in weights.items()})
        self._embedding: Tensor = self._body.get_input_embeddings().weight
        head = self._embedding if head is None else head  # None: they are tied
        codes = [head[s.first_id : s.end] for s in spec.streams]
        self._heads = torch.cat(codes)
        self._bias = torch.cat([c @ e for c, e in zip(codes, streams, strict=True)])
        self._first_ids = torch.tensor([s.first_id for s in spec.streams], device=device)
        self._delays = torch.tensor(spec.delays, device=device)
        self._pads = torch.tensor([s.pad_id for s in spec.streams], device=device)

    @torch.inference_mode()
    def generate(
        self, contexts: Sequence[Sequence[int]], scale: float | None = None
    ) -> Iterator[Tensor]:
        """Yields audio rows, int64 ``[requests, streams]``, for as long as it is asked.

        Args:
            contexts: stream-0 ids of the prompts, equally long; for guidance first those of all
                requests, then their unconditional ones.
            scale: of the guidance; None: none.
        """
        guided = scale is not None
        requests = len(contexts) // 2 if guided else len(contexts)
        cache = DynamicCache()
        prompt = torch.tensor(contexts, device=self._device)[..., None]
        shape = (*prompt.shape[:2], self.spec.num_streams - 1)
        silence = torch.zeros(shape, dtype=torch.int64, device=self._device)
        self._forward(self._embed(torch.cat([prompt, silence], -1)), cache)
        row = prompt.new_zeros(requests, self.spec.num_streams)
        row[:, 0] = self.spec.audio_begin
        for t in itertools.count():
            embedded = self._embed(row)[:, None]
            hidden = self._forward(torch.cat([embedded, embedded]) if guided else embedded, cache)
            logits = nn.functional.linear(hidden, self._heads, self._bias).float()
            if scale is not None:
                logits = scale * logits[:requests] + (1 - scale) * logits[requests:]
            drawn = self._draw(logits.view(requests, self.spec.num_streams, -1))
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
        """One code per request and stream, from ``[requests, streams, codes]``."""
        kept, places = logits.div_(self._sampling.temperature).topk(self._sampling.top_k)
        chances = kept.softmax(-1).flatten(0, 1)
        return places.gather(-1, chances.multinomial(1).view(*places.shape[:2], 1)).squeeze(-1)
