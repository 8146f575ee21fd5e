"""MOSS-TTSD as it was published: its files in miniature, and its own loop on them.

Written from the published code and configuration, in that model's terms: eight channels, each
with an embedding and a head of its own, whose ids begin at 0 but for channel 0. Only the
sampling, with its noise, is this project's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer
from torch import Tensor
from transformers import DynamicCache, Qwen3Config, Qwen3Model

from engine_adapter.tiny import byte_tokenizer
from tests.reference.sample import Sampling, draw

PAD, SIZES = 1024, [152697, *[1025] * 7]
FIRST_SPEECH, END_OF_TEXT, END_OF_SPEECH = 151665, 151643, 152694
MARKS = {
    "<|endoftext|>": END_OF_TEXT,
    "<|begin_of_style|>": 152689,
    "<|end_of_style|>": 152690,
    "<|begin_of_text|>": 152691,
    "<|end_of_text|>": 152692,
    "<|begin_of_speech|>": 152693,
    "<|end_of_speech|>": END_OF_SPEECH,
    "<speaker1>": 152695,
    "<speaker2>": 152696,
}
PROMPT = (
    "<|begin_of_style|>You are a speech synthesizer that generates natural, realistic, and "
    "human-like conversational audio from dialogue text.<|end_of_style|>\n"
    "<|begin_of_text|>{text}<|end_of_text|>\n<|begin_of_speech|>"
)
_HIDDEN = 64
_BODY = {
    "hidden_size": _HIDDEN,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}
_THETA = 1000000


def write_checkpoint(directory: Path, *, tied: bool = True) -> Path:
    """Writes random weights, a tokenizer of bytes and marks, and a configuration."""
    directory.mkdir()
    channels = {"channels": 8, "speech_vocab_size": 1025, "speech_pad_token": PAD}
    ids = {
        "vocab_size": SIZES[0],
        "bos_token_id": END_OF_TEXT,
        "eos_token_id": END_OF_TEXT,
        "speech_token_range": [FIRST_SPEECH, FIRST_SPEECH + 1024],
    }
    rest = {"rope_theta": _THETA, "tie_word_embeddings": tied}
    named = {"model_type": "moss_ttsd", "architectures": ["MossTTSDForCausalLM"]}
    (directory / "config.json").write_text(
        json.dumps({**named, **_BODY, **channels, **ids, **rest})
    )
    _tokenizer().save(str(directory / "tokenizer.json"))
    weights = _weights(tied)
    names = sorted(weights)
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        shard = directory / f"model-{number:05}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, shard)
    return directory


def _tokenizer() -> Tokenizer:
    data = json.loads(byte_tokenizer().to_str())
    data["model"]["vocab"] |= MARKS
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    return tokenizer


def _weights(tied: bool) -> dict[str, Tensor]:
    """Small embeddings, so that tied heads do not only repeat; and an end that comes at times.

    The last channel of the residual stream is a constant of stream 0 that no layer writes to.
    """
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int, scale: float) -> Tensor:
        return torch.randn(shape, generator=generator) * scale

    weights: dict[str, Tensor] = {}
    for name, tensor in _body().state_dict().items():
        if name == "embed_tokens.weight":  # there, but never used
            weights["model.language_model." + name] = torch.zeros(1, _HIDDEN)
            continue
        shape = tuple(tensor.shape)
        norm = len(shape) == 1
        value = (
            1 + normal(*shape, scale=0.2) if norm else normal(*shape, scale=1.5 / shape[1] ** 0.5)
        )
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            value[-1] = 0
        weights["model.language_model." + name] = value
    weights["model.language_model.norm.weight"][-1] = 1
    for kind in ("model.embedding_list", *(() if tied else ("lm_heads",))):
        for channel, size in enumerate(SIZES):
            table = normal(size, _HIDDEN, scale=0.15)
            table[:, -1] = 0 if channel else 0.5
            if channel == 0:
                table[END_OF_SPEECH] *= 0.2  # the constant shall decide
                table[END_OF_SPEECH, -1] = 20
            weights[f"{kind}.{channel}.weight"] = table
    return weights


def _body() -> Any:
    rope = {"rope_type": "default", "rope_theta": float(_THETA)}
    config = Qwen3Config(**_BODY, rope_parameters=rope, vocab_size=1)
    return Qwen3Model._from_config(config, dtype=torch.float32, attn_implementation="sdpa")


class Published:
    """The published model, and how it generates."""

    def __init__(self, directory: Path) -> None:
        weights: dict[str, Tensor] = {}
        for shard in directory.glob("*.safetensors"):
            weights |= load_file(shard)
        self._body = _body().eval()
        prefix = "model.language_model."
        self._body.load_state_dict(
            {name.removeprefix(prefix): w for name, w in weights.items() if prefix in name}
        )
        self._embeddings = [weights[f"model.embedding_list.{i}.weight"] for i in range(8)]
        own_heads = [weights.get(f"lm_heads.{i}.weight") for i in range(8)]
        self._heads = [
            embedding if head is None else head
            for head, embedding in zip(own_heads, self._embeddings, strict=True)
        ]

    @torch.inference_mode()
    def generate(
        self, prompt: Sequence[int], seed: int, sampling: Sampling, rows: int
    ) -> list[list[int]]:
        """Rows of eight channels' ids, from the first with a code to the last of the tail.

        Args:
            prompt: ids of channel 0.
            rows: to give up after.
        """
        cache = DynamicCache()
        given = [[i, *[PAD] * 7] for i in prompt]
        hidden = self._run(given, cache)
        written: list[list[int]] = []
        left = -1  # rows of the tail, once channel 0 has left the codes
        while left != 0 and len(written) < rows:
            t = len(written)
            row = [self._sample(hidden, channel, t, seed, sampling) for channel in range(8)]
            if left < 0 and not FIRST_SPEECH <= row[0] < FIRST_SPEECH + 1024:
                left = 7
            row[t + 1 :] = [PAD] * (7 - t)  # what the shifted prompt has there
            if 0 < left < 7:
                row[0] = END_OF_TEXT
                row[1 : 8 - left] = [PAD] * (7 - left)
            written.append(row)
            left = max(left - 1, -1)
            hidden = self._run([row], cache)
        return written

    def _run(self, rows: Sequence[Sequence[int]], cache: DynamicCache) -> Tensor:
        columns = torch.tensor([list(row) for row in rows]).T
        channels = [table[ids] for table, ids in zip(self._embeddings, columns, strict=True)]
        embedded = torch.stack(channels).sum(0)
        output = self._body(inputs_embeds=embedded[None], past_key_values=cache, use_cache=True)
        hidden: Tensor = output.last_hidden_state[0, -1]
        return hidden

    def _sample(self, hidden: Tensor, channel: int, t: int, seed: int, sampling: Sampling) -> int:
        """A code, or on channel 0, after seven rows, the end."""
        first = 0 if channel else FIRST_SPEECH
        ids = torch.arange(first, first + 1024)
        if channel == 0 and t >= 7:
            ids = torch.cat([ids, torch.tensor([END_OF_SPEECH])])
        logits = self._heads[channel][ids] @ hidden
        # The noise goes by ids in one vocabulary, which has the channels one after the other;
        # by rows, the first of which is the mark that begins the speech.
        place = sum(SIZES[:channel])
        return int(ids[draw(logits, place + ids, sampling, seed, t + 1, channel).index])
