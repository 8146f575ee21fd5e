"""The model vLLM loads: any backbone it knows, with several streams in and out.

The backbone is whatever class vLLM has for ``backbone_architecture``; it must have an
embedding, a body that takes input embeddings, and a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from vllm.config import VllmConfig
from vllm.model_executor.models.utils import init_vllm_registered_model
from vllm.sequence import IntermediateTensors

from engine_adapter.embedded import EmbeddedRows
from engine_adapter.heads import CodecHeads
from engine_adapter.spec import StreamSpec

ARCHITECTURE = "SpeechLM"
_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_STREAM_EMBEDDING = "stream_embedding.weight"
_BACKBONE, _AUXILIARY, _HEADS = "backbone", "auxiliary_embedding", "codec_heads"


class SpeechLM(nn.Module):
    """A backbone with summed stream embeddings in and codec-slice heads out.

    ``forward`` has vLLM's plain signature: the auxiliary streams' ids stand in
    ``auxiliary_ids``, a buffer with a fixed address that the runner fills before each step
    (a keyword tensor would differ between real and captured steps). So do rows that are
    embeddings, in families that have such: :meth:`embed_rows` puts them there.
    """

    auxiliary_ids: Tensor
    silent_rows: Tensor
    given: Tensor
    is_given: Tensor

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.spec = StreamSpec.load(vllm_config.model_config.model)
        self._tied = bool(getattr(config, "tie_word_embeddings", False))
        self.backbone = init_vllm_registered_model(
            vllm_config,
            prefix=prefix,  # layers are named as in the checkpoint, whose quantisation names them
            architectures=[config.backbone_architecture],
        )
        dtype = vllm_config.model_config.dtype
        self.codec_heads = CodecHeads(self.spec, config.hidden_size, dtype)
        self._first_auxiliary, auxiliary = auxiliary_range(self.spec)
        self.auxiliary_embedding = nn.Parameter(
            torch.zeros(1 + auxiliary, config.hidden_size, dtype=dtype), requires_grad=False
        )
        self._padding_row = 0 if self.spec.pad_embedding == "zero" else None
        self.register_buffer("silent_rows", _silent_rows(self.spec), persistent=False)
        max_tokens = vllm_config.scheduler_config.max_num_batched_tokens
        self.register_buffer(
            "auxiliary_ids",
            torch.zeros(max_tokens, self.spec.num_streams - 1, dtype=torch.int32),
            persistent=False,
        )
        if self.spec.hears_embeddings:
            given = torch.zeros(max_tokens, config.hidden_size, dtype=dtype)
            self.register_buffer("given", given, persistent=False)
            is_given = torch.zeros(max_tokens, 1, dtype=torch.bool)
            self.register_buffer("is_given", is_given, persistent=False)
        self._any_given = False

    def embed_input_ids(self, input_ids: Tensor) -> Tensor:
        """Embedding of stream 0, ``[n, hidden]``."""
        embedded: Tensor = self.backbone.embed_input_ids(input_ids)
        return embedded

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> Tensor | IntermediateTensors:
        """Hidden states ``[n, hidden]`` after the final norm."""
        if inputs_embeds is None:
            assert input_ids is not None
            tokens = len(input_ids)
            inputs_embeds = self.embed_input_ids(input_ids) + self._embed_auxiliary(tokens)
            if self.spec.hears_embeddings:
                inputs_embeds = torch.where(
                    self.is_given[:tokens], self.given[:tokens], inputs_embeds
                )
        hidden: Tensor | IntermediateTensors = self.backbone(
            input_ids=None,
            positions=positions,
            intermediate_tensors=intermediate_tensors,
            inputs_embeds=inputs_embeds,
        )
        return hidden

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        """The hidden states themselves.

        vLLM calls this for exactly the rows to be sampled. Which product a row needs
        depends on its phase, which the runner knows: it calls :meth:`text_logits` and
        ``codec_heads`` on the rows of each phase.
        """
        return hidden_states

    def text_logits(self, hidden: Tensor) -> Tensor:
        """Full-vocabulary logits, float32 ``[n, vocab]``."""
        logits: Tensor = self.backbone.compute_logits(hidden)
        return logits.float()

    def embed_rows(self, rows: EmbeddedRows | None) -> None:
        """Says which rows of the next step are embeddings; None: none is."""
        if self._any_given:
            self.is_given.zero_()
        self._any_given = rows is not None
        if rows is not None:
            places = torch.from_numpy(rows.positions).to(self.given.device, torch.int64)
            self.given[places] = torch.from_numpy(rows.embeddings).to(self.given)
            self.is_given[places] = True

    def _embed_auxiliary(self, tokens: int) -> Tensor:
        ids = self.auxiliary_ids[:tokens]
        rows = torch.where(ids == 0, self.silent_rows, ids - (self._first_auxiliary - 1))
        return nn.functional.embedding_bag(
            rows, self.auxiliary_embedding, mode="sum", padding_idx=self._padding_row
        )

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Loads the backbone and copies what the streams need on the way.

        Raises:
            ValueError: the checkpoint lacks a tensor the streams need.
        """
        found: set[str] = set()
        loaded = self.backbone.load_weights(self._copy_streams(weights, found))
        missing = {_EMBEDDING, _STREAM_EMBEDDING} | (set() if self._tied else {_HEAD})
        missing -= found
        if missing:
            raise ValueError(f"the checkpoint lacks {', '.join(sorted(missing))}")
        self.codec_heads.finish_loading()
        ours = {_AUXILIARY, f"{_HEADS}.weight", f"{_HEADS}.stream_embedding"}
        return {f"{_BACKBONE}.{name}" for name in loaded} | ours

    def _copy_streams(
        self, weights: Iterable[tuple[str, Tensor]], found: set[str]
    ) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in weights:
            found.add(name)
            if name == _STREAM_EMBEDDING:
                self.codec_heads.stream_embedding.data.copy_(tensor)
                continue
            if name == _EMBEDDING:
                first, table = self._first_auxiliary, self.auxiliary_embedding.data
                table[0] = tensor[0]
                table[1:] = tensor[first : first + len(table) - 1]
            if name == _HEAD or (name == _EMBEDDING and self._tied):
                self.codec_heads.take_head(tensor)
            yield name, tensor


def _silent_rows(spec: StreamSpec) -> Tensor:
    """Per auxiliary stream, the row of ``auxiliary_embedding`` that id 0 stands for."""
    first, _ = auxiliary_range(spec)
    pads = [s.pad_id if spec.pad_embedding == "pad" else 0 for s in spec.streams[1:]]
    return torch.tensor([pad and pad - (first - 1) for pad in pads], dtype=torch.int32)


def auxiliary_range(spec: StreamSpec) -> tuple[int, int]:
    """First id and number of ids that streams 1 and up may hold, 0 aside."""
    ids = [i for s in spec.streams[1:] for i in (s.first_id, s.end - 1, s.pad_id) if i != 0]
    return (min(ids), max(ids) - min(ids) + 1) if ids else (1, 0)
