"""The language model: rows of eight streams through a Qwen3 body, as vLLM will run it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import Qwen3Config, Qwen3Model

from demo_voice.recipe import LanguageModelRecipe
from demo_voice.rows import IGNORED
from engine_adapter.spec import StreamSpec

_MAX_POSITIONS = 4096


def backbone_config(spec: StreamSpec, recipe: LanguageModelRecipe) -> dict[str, Any]:
    """The ``config.json`` of the served model directory."""
    return {
        "architectures": ["SpeechLM"],
        "backbone_architecture": "Qwen3ForCausalLM",
        "model_type": "qwen3",
        "vocab_size": spec.vocab_size,
        "hidden_size": recipe.hidden,
        "intermediate_size": recipe.feed_forward,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "num_key_value_heads": recipe.kv_heads,
        "head_dim": 64,
        "hidden_act": "silu",
        "max_position_embeddings": _MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": "float32",
    }


class SpeechLanguageModel(nn.Module):
    """Embedding, body and heads of docs/generation.md for a family of equal codebooks.

    The names of its tensors are those of the served checkpoint.
    """

    def __init__(self, spec: StreamSpec, recipe: LanguageModelRecipe) -> None:
        super().__init__()
        values = backbone_config(spec, recipe)
        config = Qwen3Config(
            **{k: v for k, v in values.items() if k not in ("architectures", "model_type")}
        )
        # At some hundred rows a batch, plain products are faster than the flash kernel of a CPU.
        config._attn_implementation = "eager"
        self.model = Qwen3Model(config)
        self.lm_head = nn.Linear(recipe.hidden, spec.vocab_size, bias=False)
        self.stream_embedding = nn.Embedding(spec.num_streams, recipe.hidden)
        nn.init.normal_(self.model.embed_tokens.weight, std=0.1)
        nn.init.normal_(self.stream_embedding.weight, std=0.02)
        nn.init.normal_(self.lm_head.weight, std=0.02)
        # Two heads of the middle: what they find must still be turned into sounds.
        middle = recipe.layers // 2
        self._guided = ((middle - 1, 0), (middle, recipe.heads // 2))
        self._first = spec.streams[0].first_id
        self._end = spec.audio_end_ids[0]
        self._shape = (spec.num_streams, spec.streams[0].size)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Reads int64 ``[batch, rows, streams]``.

        Returns hidden states ``[batch, rows, hidden]``, and the attention of the guided heads,
        ``[heads, batch, rows, rows]``.

        Rows that fill up a batch stand at the end, where causal attention keeps them from the
        others.
        """
        # The id 0, which stream 0 never has, is a pad of the others and adds nothing.
        embedded = nn.functional.embedding_bag(
            ids.flatten(0, 1), self.model.embed_tokens.weight, mode="sum", padding_idx=0
        )
        inputs = embedded.view(*ids.shape[:2], -1)
        output = self.model(inputs_embeds=inputs, use_cache=False, output_attentions=True)
        guided = [output.attentions[layer][:, head] for layer, head in self._guided]
        return output.last_hidden_state, torch.stack(guided)

    @staticmethod
    def guide(attention: Tensor, places: Tensor, width: float) -> Tensor:
        """How far from the text that is being spoken the guided heads look, a scalar.

        After the guided attention of Tachibana, Uenoyama and Aihara (arXiv 1710.08969): that
        speech goes through its text at a steady pace need not be found out by trial. It is the
        negative logarithm of the attention that falls near the place.

        Args:
            attention: ``[heads, batch, rows, rows]``.
            places: float32 ``[batch, rows]``, see ``demo_voice.rows``.
            width: standard deviation of a Gaussian around the place, in letters.
        """
        known = ~places.isnan()
        columns = torch.arange(attention.shape[-1], device=attention.device)
        near = torch.exp(-0.5 * ((columns - places[known][:, None]) / width).square())
        looked = (attention[:, known].float() * near).sum(-1)
        return -(looked + 1e-4).log().mean()

    def losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy of each stream, float32 ``[streams]``.

        Args:
            hidden: ``[n, hidden]``.
            targets: int64 ``[n, streams]``, see ``demo_voice.rows``.
        """
        streams, size = self._shape
        table = self.lm_head.weight[self._first : self._first + streams * size]
        biases = (table.view(streams, size, -1) @ self.stream_embedding.weight[:, :, None])[..., 0]
        logits = (hidden @ table.T).view(-1, streams, size) + biases
        ends = self.lm_head.weight[self._end] @ (hidden + self.stream_embedding.weight[0]).T
        primary = torch.cat([logits[:, 0], ends[:, None]], dim=1)
        cross_entropy = nn.functional.cross_entropy
        losses = [cross_entropy(primary.float(), targets[:, 0], ignore_index=IGNORED)]
        for stream in range(1, streams):
            losses.append(
                cross_entropy(logits[:, stream].float(), targets[:, stream], ignore_index=IGNORED)
            )
        return torch.stack(losses)
