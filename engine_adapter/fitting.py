"""Whether an engine's settings fit a model and a device: said before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine_adapter.engine_config import EngineConfig, SettingError
from engine_adapter.spec import StreamSpec

# What vLLM quantises by itself while it loads, and what a checkpoint must have been before.
QUANTIZED_ON_LOADING = ("fp8", "fp8_per_tensor", "fp8_per_channel", "fp8_per_block")
QUANTIZED_BEFORE = ("awq", "gptq", "compressed-tensors")

CPU_KV_BYTES = 2**30
CPU_BLOCK_SIZE = 128  # vLLM's default there


def check(
    config: EngineConfig, backbone: Mapping[str, Any], spec: StreamSpec, *, on_cpu: bool
) -> None:
    """
    Args:
        backbone: the model's ``config.json``.
        spec: its ``speech.json``.
        on_cpu: whether it runs without a GPU.

    Raises:
        SettingError: naming the setting that does not fit.
        ValueError: ``config.json`` lacks a size, or has a value of another kind.
    """
    _check_length(config, backbone)
    _check_guidance(config, spec)
    _check_parallel(config, backbone)
    _check_quantization(config, backbone)
    if on_cpu:
        _check_cpu_memory(config, backbone)


def _check_length(config: EngineConfig, backbone: Mapping[str, Any]) -> None:
    length, positions = config.max_model_len, _positions(backbone)
    if length is not None and positions is not None and length > positions:
        raise SettingError(
            f"max_model_len: {length} rows are more than the {positions} positions of the model"
        )


def _positions(backbone: Mapping[str, Any]) -> int | None:
    """Positions of the backbone; None where scaling changes them, which vLLM computes."""
    rope = _mapping(backbone, "rope_parameters") or {}
    scaled = rope.get("rope_type", "default") != "default" or backbone.get("rope_scaling")
    return None if scaled else _size(backbone, "max_position_embeddings")


def _check_guidance(config: EngineConfig, spec: StreamSpec) -> None:
    if config.max_rows < 2 and spec.cfg_scale > 1:
        raise SettingError(
            "max_rows: must be at least 2: the model is guided where a request does not say "
            f"(scale {spec.cfg_scale:g}), and guidance takes two rows"
        )


def _check_parallel(config: EngineConfig, backbone: Mapping[str, Any]) -> None:
    workers = config.tensor_parallel_size
    if workers == 1:
        return
    heads, key_heads = _heads(backbone)
    sizes = {"attention heads": heads, "inner channels": _size(backbone, "intermediate_size")}
    for what, number in sizes.items():
        if number % workers:
            raise SettingError(
                f"tensor_parallel_size: {workers} workers cannot share the model's {number} {what}"
            )
    if key_heads % workers and workers % key_heads:
        raise SettingError(
            f"tensor_parallel_size: {workers} workers cannot share the model's {key_heads} "
            "key and value heads"
        )


def _check_quantization(config: EngineConfig, backbone: Mapping[str, Any]) -> None:
    asked, stored = config.quantization, _stored_quantization(backbone)
    known = (*QUANTIZED_BEFORE, *QUANTIZED_ON_LOADING)
    if asked is not None and asked not in known:
        raise SettingError(f"quantization: {asked!r} is not one of {', '.join(known)}")
    if asked is not None and stored is not None and asked != stored:
        raise SettingError(f"quantization: {asked}, but the model's config.json says {stored}")
    if asked in QUANTIZED_BEFORE and stored is None:
        raise SettingError(
            f"quantization: {asked} needs weights that were quantised with it before, and the "
            "model's config.json has no quantization_config"
        )
    used = asked or stored
    if config.dtype == "float32" and used in known and used != "compressed-tensors":
        raise SettingError(f"dtype: quantised with {used} it runs in bfloat16, not in float32")


def _stored_quantization(backbone: Mapping[str, Any]) -> str | None:
    """The method by which the weights were quantised."""
    stored = _mapping(backbone, "quantization_config")
    return None if stored is None else str(stored.get("quant_method"))


def _check_cpu_memory(config: EngineConfig, backbone: Mapping[str, Any]) -> None:
    """The KV cache must hold one request of the greatest length, beside vLLM's null block."""
    length = config.max_model_len or _positions(backbone)
    if length is None:
        return
    size = config.block_size or CPU_BLOCK_SIZE
    needed = -(-length // size) + 1
    if config.kv_blocks is not None:
        if config.kv_blocks < needed:
            raise SettingError(
                f"kv_blocks: {config.kv_blocks} of {size} rows are too few for max_model_len "
                f"({length}), which takes {needed}; raise the one, or lower the other"
            )
        return
    blocks = (config.kv_cache_bytes or CPU_KV_BYTES) // (size * _row_bytes(config, backbone))
    if blocks < needed:
        fits = max(0, blocks - 1) * size
        raise SettingError(
            f"max_model_len: {length} rows do not fit into the KV cache, which holds {fits}; "
            f"lower it, or set kv_blocks to at least {needed}"
        )


def _row_bytes(config: EngineConfig, backbone: Mapping[str, Any]) -> int:
    """Of the keys and values of one row, in one worker."""
    _, key_heads = _heads(backbone)
    shared = max(1, key_heads // config.tensor_parallel_size)
    values = _size(backbone, "num_hidden_layers") * 2 * shared * _head_dim(backbone)
    return values * (4 if config.dtype == "float32" else 2)


def _heads(backbone: Mapping[str, Any]) -> tuple[int, int]:
    """Attention heads, and those of keys and values."""
    heads = _size(backbone, "num_attention_heads")
    return heads, _size(backbone, "num_key_value_heads", heads)


def _head_dim(backbone: Mapping[str, Any]) -> int:
    heads, _ = _heads(backbone)
    return _size(backbone, "head_dim", _size(backbone, "hidden_size") // heads)


def _mapping(backbone: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = backbone.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"config.json: {key} must be an object, or null")
    return value


def _size(backbone: Mapping[str, Any], key: str, otherwise: int | None = None) -> int:
    """
    Args:
        otherwise: where there is none.
    """
    size = backbone.get(key) or otherwise
    if type(size) is not int or size < 1:
        raise ValueError(f"config.json: {key} is {size!r}, not a whole number from 1")
    return size
