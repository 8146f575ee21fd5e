"""How a model is run: the settings of an engine."""

from __future__ import annotations

from dataclasses import dataclass


class SettingError(ValueError):
    """A setting is impossible, or does not fit the model; the message begins with its name."""


@dataclass(frozen=True)
class EngineConfig:
    """How a model is run. None leaves the choice to vLLM.

    Attributes:
        model: model directory (docs/generation.md).
        dtype: ``float32`` or ``bfloat16``.
        max_rows: rows that step together; a guided request takes two while it speaks.
        kv_blocks: KV cache blocks, instead of as many as the memory allows.
        block_size: tokens per KV block.
        max_batched_tokens: tokens of one step; at least ``max_rows``.
        max_model_len: rows of a context at most.
        prefix_cache: share the KV blocks of equal prompts.
        gpu_memory_utilization: share of the GPU's memory for the engine.
        kv_cache_bytes: KV cache size of a worker; on CPUs 1 GiB unless set.
        enforce_eager: no compilation and no CUDA graphs; always so on CPUs.
        tensor_parallel_size: workers that share each layer, on a GPU each, or all on the CPUs.
        quantization: of the backbone's linear layers, as vLLM names it; None: what the
            model's ``config.json`` says. Heads and embeddings of the streams never are quantised.
    """

    model: str
    dtype: str = "float32"
    max_rows: int = 32
    kv_blocks: int | None = None
    block_size: int | None = None
    max_batched_tokens: int | None = None
    max_model_len: int | None = None
    prefix_cache: bool = True
    gpu_memory_utilization: float | None = None
    kv_cache_bytes: int | None = None
    enforce_eager: bool = False
    tensor_parallel_size: int = 1
    quantization: str | None = None

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise SettingError(f"max_rows: must be at least 1, got {self.max_rows}")
        if self.max_batched_tokens is not None and self.max_batched_tokens < self.max_rows:
            raise SettingError(
                f"max_batched_tokens: must be at least max_rows ({self.max_rows}), or a step "
                f"could not move every row; got {self.max_batched_tokens}"
            )
        if self.tensor_parallel_size < 1:
            raise SettingError(
                f"tensor_parallel_size: must be at least 1, got {self.tensor_parallel_size}"
            )
