"""Rows to hidden states to logits: the network around a Hugging Face backbone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaModel,
    Olmo2Config,
    Olmo2Model,
    Qwen3Config,
    Qwen3Model,
)

from engine_adapter.checkpoint import STREAM_EMBEDDING, ModelDirectory
from engine_adapter.spec import StreamSpec

Row = Sequence[int]
PromptRow = Row | Tensor
"""Ids of all streams, or the embedding ``[H]`` of a row that is heard."""

_BODIES = {
    "qwen3": (Qwen3Config, Qwen3Model),
    "llama": (LlamaConfig, LlamaModel),
    "olmo2": (Olmo2Config, Olmo2Model),
}


class Model:
    """A model directory in memory, on the CPU.

    Attributes:
        spec: the family's spec.
        max_model_len: rows the backbone has positions for.
        audio_ids: per stream, int64 ``[C]``: the ids it may be sampled among in audio.
        text_ids: int64 ``[C]``: the ids stream 0 may be sampled among in text; empty for
            a family without text.
    """

    def __init__(self, directory: str | Path, dtype: torch.dtype = torch.float32) -> None:
        """Loads the weights.

        Args:
            directory: a model directory.
            dtype: of the network. float64 measures what float32 rounds away.

        Raises:
            CheckpointError: the directory is incomplete.
            ValueError: the backbone is none of qwen3, llama, olmo2.
        """
        files = ModelDirectory.open(directory)
        self._build(files.spec, files.config, dict(files.tensors()), dtype)

    @classmethod
    def of(
        cls, spec: StreamSpec, config: Mapping[str, Any], weights: Mapping[str, Tensor]
    ) -> Model:
        """A model of tensors that come from elsewhere, in float32.

        Args:
            spec: of the family.
            config: of the backbone, and ``tie_word_embeddings``.
            weights: under the names of a model directory.
        """
        model = cls.__new__(cls)
        model._build(spec, config, weights, torch.float32)
        return model

    def _build(
        self,
        spec: StreamSpec,
        config: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        dtype: torch.dtype,
    ) -> None:
        self.spec = spec
        weights = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        self._stream_embedding = weights.pop(STREAM_EMBEDDING)
        tied = config["tie_word_embeddings"]
        self._head = weights["model.embed_tokens.weight"] if tied else weights.pop("lm_head.weight")
        self._body = _body(config, weights, dtype)
        self._embedding = self._body.get_input_embeddings().weight
        self.max_model_len = int(config["max_position_embeddings"])

        self.audio_ids: list[Tensor] = []
        for s, stream in enumerate(spec.streams):
            ids = list(range(stream.first_id, stream.first_id + stream.size))
            ids += [stream.pad_id] if spec.boundary == "sampled" else []
            ids += spec.audio_end_ids if s == 0 else ()
            self.audio_ids.append(torch.tensor(ids))
        self._audio_heads = [self._head[ids] for ids in self.audio_ids]
        text: list[int] = []
        if spec.text is not None:
            first = spec.text.first_id
            text = [*range(first, first + spec.text.size), *spec.text.end_ids]
        self.text_ids = torch.tensor(text, dtype=torch.int64)
        self._text_head = self._head[self.text_ids]

    def context(self) -> Context:
        """An empty sequence of rows."""
        return Context(self)

    def audio_logits(self, hidden: Tensor, stream: int) -> Tensor:
        """Logits of ``audio_ids[stream]``: ``[H]`` to ``[C]``."""
        return self._audio_heads[stream] @ self._biased(hidden, stream)

    def text_logits(self, hidden: Tensor) -> Tensor:
        """Logits of ``text_ids`` on stream 0: ``[H]`` to ``[C]``."""
        return self._text_head @ self._biased(hidden, stream=0)

    def _biased(self, hidden: Tensor, stream: int) -> Tensor:
        if stream == 0 and self.spec.head_bias == "auxiliary":
            return hidden
        return hidden + self._stream_embedding[stream]

    def embed(self, rows: Sequence[PromptRow]) -> Tensor:
        """Input embeddings of rows: ``[N][S]`` to ``[N, H]``."""
        nothing = [0] * self.spec.num_streams
        ids = torch.tensor([nothing if isinstance(row, Tensor) else list(row) for row in rows])
        if self.spec.pad_embedding == "pad":
            for s, stream in enumerate(self.spec.streams[1:], start=1):
                ids[:, s][ids[:, s] == 0] = stream.pad_id
        embedded = self._embedding[ids]
        if self.spec.pad_embedding == "zero":
            embedded[:, 1:][ids[:, 1:] == 0] = 0
        summed = embedded.sum(dim=1)
        for i, row in enumerate(rows):
            if isinstance(row, Tensor):
                summed[i] = row
        return summed

    def run(self, embedded: Tensor, cache: DynamicCache) -> Tensor:
        """Hidden state after the final norm, of the last row: ``[N, H]`` to ``[H]``."""
        output = self._body(inputs_embeds=embedded[None], past_key_values=cache, use_cache=True)
        return output.last_hidden_state[0, -1]


class Context:
    """One sequence of rows and its KV cache."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._cache = DynamicCache()
        self._unread: list[PromptRow] = []
        self._hidden: Tensor | None = None
        self.length = 0  # rows appended

    def append(self, rows: Sequence[PromptRow]) -> None:
        """Adds rows, ``[N][S]``."""
        self._unread.extend(rows)
        self.length += len(rows)

    def hidden(self) -> Tensor:
        """The hidden state ``[H]`` of the last row, which predicts the next one."""
        if self._unread:
            self._hidden = self._model.run(self._model.embed(self._unread), self._cache)
            self._unread = []
        if self._hidden is None:
            raise ValueError("the context is empty")
        return self._hidden


def _body(config: Mapping[str, Any], weights: dict[str, Tensor], dtype: torch.dtype) -> Any:
    kind = config["model_type"]
    if kind not in _BODIES:
        raise ValueError(f"model_type {kind!r} is none of {', '.join(_BODIES)}")
    config_class, model_class = _BODIES[kind]
    values = {k: v for k, v in config.items() if k not in ("architectures", "model_type", "dtype")}
    body = model_class._from_config(config_class(**values), dtype=dtype, attn_implementation="sdpa")
    body.load_state_dict({name.removeprefix("model."): w for name, w in weights.items()})
    return body.eval()
