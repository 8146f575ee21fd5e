"""The model vLLM loads: any backbone it knows, with several streams in and out.

The backbone is whatever class vLLM has for ``backbone_architecture``; it must have an
embedding, a body that takes input embeddings, and a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import Tensor, nn
from vllm.config import VllmConfig
from vllm.model_executor.models.utils import init_vllm_registered_model
from vllm.sequence import IntermediateTensors

from engine_adapter.heads import CodecHeads
from engine_adapter.input_rows import InputRows
from engine_adapter.spec import StreamSpec

ARCHITECTURE = "SpeechLM"
_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_STREAM_EMBEDDING = "stream_embedding.weight"
_BACKBONE, _ROWS, _HEADS = "backbone", "input_rows", "codec_heads"


class SpeechLM(nn.Module):
    """A backbone with summed stream embeddings in and codec-slice heads out.

    ``forward`` has vLLM's plain signature. What else a step reads, the runner puts into
    ``input_rows`` before it.
    """

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
        max_tokens = vllm_config.scheduler_config.max_num_batched_tokens
        self.input_rows = InputRows(self.spec, config.hidden_size, dtype, max_tokens)

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
            inputs_embeds = self.input_rows(self.embed_input_ids(input_ids))
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
        """Full-vocabulary logits of stream 0, float32 ``[n, vocab]``."""
        if self.spec.head_bias == "all":
            hidden = hidden + self.codec_heads.stream_embedding[0]
        logits: Tensor = self.backbone.compute_logits(hidden)
        return logits.float()

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
        ours = {f"{_ROWS}.embedding", f"{_HEADS}.weight", f"{_HEADS}.stream_embedding"}
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
                self.input_rows.take_embedding(tensor)
            if name == _HEAD or (name == _EMBEDDING and self._tied):
                self.codec_heads.take_head(tensor)
            yield name, tensor
