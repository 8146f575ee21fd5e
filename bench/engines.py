"""Starts and ends the engines under test, all with the same settings."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from engine_adapter.engine import SpeechEngine

_KV_CACHE_BYTES = 2**30
_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class EngineSettings:
    """What every engine of a run is started with.

    Attributes:
        max_rows: rows that step together at most.
        threads: of the forward pass.
    """

    dtype: str
    max_rows: int
    threads: int


def prepare_environment() -> None:
    """What vLLM reads when it is imported; standard output stays free for the report."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"


@contextmanager
def speech_engine(
    directory: Path, settings: EngineSettings, **options: Any
) -> Iterator[SpeechEngine]:
    """Our engine, as the service starts it.

    Args:
        options: further fields of its configuration.
    """
    from engine_adapter.engine import EngineConfig, SpeechEngine

    os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    config = EngineConfig(
        str(directory),
        dtype=settings.dtype,
        max_rows=settings.max_rows,
        kv_cache_bytes=_KV_CACHE_BYTES,
        **options,
    )
    engine = SpeechEngine(config)
    try:
        yield engine
    finally:
        engine.shutdown()
        end_children()


@contextmanager
def stock_engine(
    directory: Path,
    settings: EngineSettings,
    *,
    default_executor: bool = False,
    **options: Any,
) -> Iterator[AsyncLLM]:
    """Stock vLLM on the backbone, with the settings of ``SpeechEngine``.

    Args:
        default_executor: leaves the executor and its threads to vLLM.
        options: further engine arguments.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    on_cpu = current_platform.is_cpu()

    if default_executor:
        os.environ.pop("OMP_NUM_THREADS", None)
    else:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    args = AsyncEngineArgs(
        model=str(directory),
        dtype=cast(Any, settings.dtype),
        max_num_seqs=settings.max_rows,
        kv_cache_memory_bytes=_KV_CACHE_BYTES,
        enable_prefix_caching=True,
        enforce_eager=on_cpu,
        skip_tokenizer_init=True,
        generation_config="vllm",
        async_scheduling=False,
        distributed_executor_backend=UniProcExecutor if on_cpu and not default_executor else None,
        **options,
    )
    engine = AsyncLLM.from_engine_args(args)
    try:
        yield engine
    finally:
        engine.shutdown()
        del engine  # at the interpreter's exit it could not be deleted without an error
        end_children()


def resolved_settings(vllm_config: Any) -> dict[str, Any]:
    """What vLLM made of the settings that must be the same for a comparison; plain values."""
    model, cache = vllm_config.model_config, vllm_config.cache_config
    scheduler = vllm_config.scheduler_config
    executor = vllm_config.parallel_config.distributed_executor_backend
    return {
        "dtype": str(model.dtype).removeprefix("torch."),
        "max_model_len": model.max_model_len,
        "enforce_eager": model.enforce_eager,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "chunked_prefill": scheduler.enable_chunked_prefill,
        "async_scheduling": scheduler.async_scheduling,
        "block_size": cache.block_size,
        "kv_blocks": cache.num_gpu_blocks,
        "prefix_cache": cache.enable_prefix_caching,
        "executor": executor if isinstance(executor, str) else executor.__name__,
        "threads": os.environ.get("OMP_NUM_THREADS", "chosen by vLLM"),
    }


def end_children() -> None:
    """Waits for the processes this one has started and kills those that stay."""
    for child in multiprocessing.active_children():
        child.join(_GRACE_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
