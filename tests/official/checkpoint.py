"""What the tiny official checkpoints have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel

from engine_adapter.tiny import byte_tokenizer

HIDDEN = 64
LAYERS = 2
_LOUDER_ENDS = 3.0
_QUIETER = 8.0


@dataclass(frozen=True)
class OfficialCheckpoint:
    """A checkpoint, and what its user has beside it.

    Attributes:
        family: name of the family.
        file: the checkpoint.
        backbone_config: of the backbone alone, as Hugging Face has it.
        tokenizer: a directory with ``tokenizer.json``.
        first_text: the model's id of the tokenizer's first, which is the byte 0.
        options: of ``speechlm convert``, beyond those that every family takes.
    """

    family: str
    file: Path
    backbone_config: Path
    tokenizer: Path
    first_text: int
    options: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """Of ``speechlm convert``, ``--out`` excepted."""
        return [
            *("convert", "--family", self.family, "--checkpoint", str(self.file)),
            *("--backbone-config", str(self.backbone_config), "--tokenizer", str(self.tokenizer)),
            *self.options,
        ]

    def ids(self, text: str) -> list[int]:
        """What the model reads of a text."""
        return [self.first_text + byte for byte in text.encode()]

    def text(self, ids: Sequence[int]) -> str:
        """What it has written."""
        written: str = byte_tokenizer().decode([i - self.first_text for i in ids])
        return written


def backbone_config(model_type: str, vocabulary: int, **others: Any) -> dict[str, Any]:
    """Of a tiny backbone. Nothing in it is a default of its class."""
    return {
        "model_type": model_type,
        "architectures": ["SomethingForCausalLM"],
        "hidden_size": HIDDEN,
        "intermediate_size": 3 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 2e-5,
        "rope_theta": 20000.0,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "vocab_size": vocabulary,
        "eos_token_id": 7,
        **others,
    }


def body(config: dict[str, Any], generator: torch.Generator) -> dict[str, Tensor]:
    """Random tensors of a backbone without embedding, by their names in its body."""
    values = {k: v for k, v in config.items() if k not in ("model_type", "architectures")}
    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model(config["model_type"], **values))
    tensors = {}
    for name, like in model.state_dict().items():
        if name == "embed_tokens.weight":
            continue
        noise = torch.randn(like.shape, generator=generator)
        tensors[name] = 1 + noise / 5 if like.dim() == 1 else noise * 1.5 * like.shape[1] ** -0.5
    return tensors


def vocabulary_tensors(
    size: int, ends: Sequence[int], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Embedding and head ``[size, HIDDEN]``; what ends a phase is likelier than the rest, so
    that phases end."""
    embedding = torch.randn(size, HIDDEN, generator=generator) * 0.5
    head = torch.randn(size, HIDDEN, generator=generator) * HIDDEN**-0.5
    head[list(ends)] *= _LOUDER_ENDS
    return embedding, head


def make_readable(head: Tensor, text: range, ends: Sequence[int], louder_ends: float) -> None:
    """Changes a head so that texts are mostly signs that can be printed, by the tokenizer of
    bytes, and that text and audio are neither long nor empty.

    Args:
        text: all ids of text, the byte 0 first.
        ends: what ends text and audio.
        louder_ends: by how much these shall be louder.
    """
    # Others are quieter, rather than signs louder, which would round away more.
    head[text.start : text.start + 0x20] /= _QUIETER
    head[text.start + 0x7F : text.stop] /= _QUIETER
    head[list(ends)] *= louder_ends


def write_beside(folder: Path, config: dict[str, Any]) -> tuple[Path, Path]:
    """Writes the backbone's configuration and a tokenizer; returns their paths."""
    path = folder / "backbone" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(config))
    byte_tokenizer().save(str(path.parent / "tokenizer.json"))
    return path, path.parent
