"""The backbones of the official checkpoints: their configurations, and what tensors say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from engine_adapter.conversion.errors import ConversionError
from engine_adapter.conversion.formats import EMBEDDING, Shapes

_LAYER = "model.layers."
_OPTIONAL_KEYS = ("attention_bias", "mlp_bias")
_SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
)


@dataclass(frozen=True)
class Backbone:
    """A published backbone.

    Attributes:
        name: where it is published.
        architecture: vLLM's name of its class.
        config: the part of its Hugging Face configuration that shapes the network.
    """

    name: str
    architecture: str
    config: Mapping[str, Any]


_SMOLLM2 = Backbone(
    "HuggingFaceTB/SmolLM2-1.7B-Instruct",
    "LlamaForCausalLM",
    {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 64,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 130000.0,
        "attention_bias": False,
        "mlp_bias": False,
    },
)
_OLMO2 = Backbone(
    "allenai/OLMo-2-1124-7B",
    "Olmo2ForCausalLM",
    {
        "model_type": "olmo2",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 500000.0,
        "attention_bias": False,
    },
)
_QWEN3 = Backbone(
    "Qwen/Qwen3-8B-Base",
    "Qwen3ForCausalLM",
    {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_act": "silu",
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "attention_bias": False,
    },
)
BACKBONES = {"bagpiper": _QWEN3, "opuslm": _OLMO2, "opuslm-dialogue": _SMOLLM2}


def measured(shapes: Shapes) -> dict[str, int]:
    """Sizes that tensors have, by their keys in a configuration; those that can be told.

    Args:
        shapes: of the backbone's tensors, under their Hugging Face names.
    """
    numbers = {n.split(".")[2] for n in shapes if n.startswith(_LAYER)}
    layers = [int(number) for number in numbers if number.isdigit()]
    sizes = {
        "hidden_size": shapes.get(EMBEDDING, ())[1:],
        "intermediate_size": shapes.get(f"{_LAYER}0.mlp.gate_proj.weight", ())[:1],
        "num_hidden_layers": (max(layers) + 1,) if layers else (),
        "query_width": shapes.get(f"{_LAYER}0.self_attn.q_proj.weight", ())[:1],
        "key_width": shapes.get(f"{_LAYER}0.self_attn.k_proj.weight", ())[:1],
    }
    return {key: size[0] for key, size in sizes.items() if size}


def served_config(
    backbone: Backbone,
    given: Mapping[str, Any] | None,
    sizes: Mapping[str, int],
    vocab_size: int,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """The model directory's ``config.json``.

    Args:
        backbone: the published one, which holds where nothing is given.
        given: a Hugging Face configuration that takes its place.
        sizes: what :func:`measured` says.
        vocab_size: of the family.
        dtype: of the weights.

    Raises:
        ConversionError: the configuration is of another architecture, lacks a key, or the
            tensors have other sizes.
    """
    config = dict(backbone.config if given is None else given)
    where = f"{backbone.name}, its published backbone," if given is None else "--backbone-config"
    kind = backbone.config["model_type"]
    if config.get("model_type") != kind:
        raise ConversionError(f"{where}: model_type is {config.get('model_type')!r}, not {kind!r}")
    config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    if config.get("head_dim") is None and _are_sizes(config, "hidden_size", "num_attention_heads"):
        config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    lacking = [k for k in backbone.config if k not in (*config, *_OPTIONAL_KEYS, "rope_theta")]
    if lacking:
        raise ConversionError(f"{where} has no {', '.join(lacking)}")
    for key in _SIZES:
        if not _are_sizes(config, key):
            raise ConversionError(f"{where}: {key} is {config[key]!r}")
    _check_sizes(config, sizes, where, advise=given is None)
    kept = {k: config[k] for k in backbone.config if k in config and k != "rope_theta"}
    return {
        "architectures": ["SpeechLM"],
        "backbone_architecture": backbone.architecture,
        **kept,
        "rope_parameters": _rope(config, where),
        "vocab_size": vocab_size,
        "tie_word_embeddings": False,
        "dtype": str(dtype).removeprefix("torch."),
    }


def _are_sizes(config: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(config.get(key), int) and config[key] > 0 for key in keys)


def _check_sizes(
    config: Mapping[str, Any], sizes: Mapping[str, int], where: str, *, advise: bool
) -> None:
    said = {
        **config,
        "query_width": config["num_attention_heads"] * config["head_dim"],
        "key_width": config["num_key_value_heads"] * config["head_dim"],
    }
    wrong = [f"{k} is {n}, not {said[k]}" for k, n in sizes.items() if n != said[k]]
    if wrong:
        advice = "; give its own configuration with --backbone-config" if advise else ""
        raise ConversionError(f"differs from {where} in {', '.join(wrong)}{advice}")


def _rope(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The rotary embedding's parameters, which older configurations spread over two keys."""
    parameters = config.get("rope_parameters")
    if parameters is None:
        scaling = config.get("rope_scaling") or {}
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        others = {k: v for k, v in scaling.items() if k != "type"}
        parameters = {**others, "rope_type": kind, "rope_theta": config.get("rope_theta")}
    if parameters.get("rope_theta") is None:
        raise ConversionError(f"{where} has no rope_theta")
    return dict(parameters)
