"""SpeechEngine: the asynchronous front end, for the service and for scripts."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from engine_adapter.checkpoint import ModelDirectory
from engine_adapter.engine_config import EngineConfig, SettingError
from engine_adapter.fitting import CPU_KV_BYTES, check
from engine_adapter.frames import RowReader
from engine_adapter.request import (
    Chunk,
    EngineUnavailable,
    FinishReason,
    GenerationError,
    RequestError,
    ResolvedRequest,
    Result,
    SpeechRequest,
    resolve,
)
from engine_adapter.selfcheck import check_vllm
from engine_adapter.socket_folder import SocketFolder
from engine_adapter.tokenizer import SpeechTokenizer, TextStream
from engine_adapter.wire import WireRequest

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput

__all__ = ["EngineConfig", "SpeechEngine"]

_LOOK_SECONDS = 0.5


class SpeechEngine:
    """One model on stock vLLM. Making it starts the engine core process and blocks.

    Raises:
        VllmMismatch: the installed vLLM lacks or changed a hook.
        CheckpointError: the model directory is not complete.
        SettingError: a setting does not fit the model or the machine.
    """

    def __init__(self, config: EngineConfig, stat_loggers: Sequence[Any] = ()) -> None:
        """
        Args:
            stat_loggers: classes that vLLM tells of every step.
        """
        directory = ModelDirectory.open(config.model)
        self.spec = directory.spec
        self.config = config
        self.tokenizer = SpeechTokenizer(directory.path, self.spec)
        check_vllm()
        self._sockets = SocketFolder()
        try:
            with self._sockets.given_to_vllm():
                self._engine = _start_vllm(config, directory, stat_loggers)
        except BaseException:
            self._sockets.remove()
            raise
        self._endings: set[asyncio.Task[None]] = set()
        vllm_config = self._engine.vllm_config
        self._max_length: int = vllm_config.model_config.max_model_len
        self._hidden: int = vllm_config.model_config.hf_config.hidden_size
        self._block_size: int = vllm_config.cache_config.block_size
        # Block 0 is vLLM's null block.
        self._blocks: int = vllm_config.cache_config.num_gpu_blocks - 1

    @property
    def max_length(self) -> int:
        """Rows that a context can have, prompt included."""
        return self._max_length

    @property
    def kv_blocks(self) -> int:
        """Blocks of the KV cache that requests can have."""
        return self._blocks

    def prepare(self, request: SpeechRequest) -> ResolvedRequest:
        """Checks a request and fills in its defaults; the seed is drawn here.

        Raises:
            RequestError: naming the field at fault.
        """
        text = request.text
        if text is not None and not isinstance(text, str):
            raise RequestError("text", f"must be a string, got {text!r}")
        if text is not None and any("\ud800" <= character <= "\udfff" for character in text):
            raise RequestError("text", "has half of a surrogate pair")
        encoded = None if text is None else self.tokenizer.encode(text)
        resolved = resolve(request, self.spec, encoded)
        if resolved.embedded is not None:
            width = resolved.embedded.embeddings.shape[1]
            if width != self._hidden:
                raise RequestError("embedded", f"must be {self._hidden} wide, got {width}")
        field = "text" if text is not None else "prompt_ids"
        if resolved.guided and self.config.max_rows < 2:
            raise RequestError("cfg_scale", "guidance takes two rows; the engine has one")
        least, room = self._least_rows(resolved), self._room(resolved)
        if len(resolved.prompt) + least > room:
            raise RequestError(
                field,
                f"{len(resolved.prompt)} prompt rows are too many: with at least {least} rows "
                f"to generate they exceed the {room} the engine can hold",
            )
        return resolved

    def _least_rows(self, request: ResolvedRequest) -> int:
        """Rows the shortest answer takes."""
        spec = self.spec
        if request.output == "text":
            return 1
        bridge = 1 if request.output == "audio" else 1 + len(spec.text_to_audio)
        return bridge + spec.audio_rows(1)

    def _room(self, request: ResolvedRequest) -> int:
        """Rows the context may have: the model's length, and what the KV cache holds."""
        rows, longer = 1, 0
        if request.guided:
            rows = 2
            if request.unconditional is not None:
                longer = max(0, len(request.unconditional) - len(request.prompt))
        cache = self._blocks // rows * self._block_size
        return min(self._max_length, cache) - longer

    async def stream(
        self, request: ResolvedRequest, request_id: str | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Generates; closing the generator or cancelling its task aborts the request.

        Yields:
            Chunks in order; only the last has a finish reason.

        Raises:
            GenerationError: the engine gave the request up.
            EngineUnavailable: the engine is dead.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        room = self._room(request)
        wire = WireRequest.of(request, room)
        prompt: dict[str, Any] = {"prompt_token_ids": request.prompt[:, 0].tolist()}
        if (salt := wire.salt) is not None:
            prompt["cache_salt"] = salt
        params = SamplingParams(
            max_tokens=room - len(request.prompt),
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=wire.to_extra_args(),
        )
        reader = RowReader(self.spec, request.output)
        text = self.tokenizer.stream()
        request_id = request_id or f"speech-{uuid.uuid4().hex}"
        outputs = self._engine.generate(cast(Any, prompt), params, request_id)
        try:
            async for output in outputs:
                yield self._chunk(output, reader, text)
        except EngineDeadError as error:
            raise EngineUnavailable("the engine is dead") from error
        finally:
            # A task of its own, which a second cancellation of this one does not cut short.
            ending = asyncio.create_task(self._end(outputs, request_id))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            await asyncio.shield(ending)

    async def _end(self, outputs: AsyncGenerator[RequestOutput, None], request_id: str) -> None:
        """Closes a request's outputs; nothing of it stays in the engine.

        vLLM aborts a request whose generator is closed, but not one that was cancelled while it
        was being handed to the engine.
        """
        await outputs.aclose()
        await self._engine.abort(request_id)

    def _chunk(self, output: RequestOutput, reader: RowReader, text: TextStream) -> Chunk:
        completion = output.outputs[0]
        reason = completion.finish_reason
        if reason not in (None, "stop", "length"):
            raise GenerationError(f"the engine ended the request: {reason}")
        rows = np.array(completion.token_ids, dtype=np.int32).reshape(-1, self.spec.num_streams)
        text_ids, codes = reader.push(rows)
        written = text.feed(text_ids)
        if reason is not None:
            written += text.flush()
        extra = output.kv_transfer_params or {}
        return Chunk(
            rows=rows,
            codes=codes,
            text=written,
            finish_reason=cast(FinishReason | None, reason),
            preemptions=extra.get("preemptions", 0),
        )

    async def generate(self, request: ResolvedRequest, request_id: str | None = None) -> Result:
        """The whole answer at once. Raises as :meth:`stream`."""
        chunks = [chunk async for chunk in self.stream(request, request_id)]
        last = chunks[-1]
        assert last.finish_reason is not None
        return Result(
            raw_ids=np.concatenate([c.rows for c in chunks]),
            codes=np.concatenate([c.codes for c in chunks]),
            text="".join(c.text for c in chunks),
            finish_reason=last.finish_reason,
            seed=request.seed,
            preemptions=last.preemptions,
        )

    async def stats(self) -> dict[str, Any]:
        """The pair ledger and what is in use, as of the engine's last step.

        Raises:
            EngineUnavailable: the engine is dead, or dies meanwhile.
        """
        from vllm.v1.engine.exceptions import EngineDeadError

        asked = asyncio.ensure_future(self._engine.collective_rpc("speech_stats"))
        try:
            # An engine that dies leaves such a question unanswered.
            while not (await asyncio.wait({asked}, timeout=_LOOK_SECONDS))[0]:
                await self.check_health()
            stats: list[dict[str, Any]] = asked.result()
        except EngineDeadError as error:
            raise EngineUnavailable("the engine is dead") from error
        finally:
            asked.cancel()
        return stats[0]

    async def drained(self, timeout: float = 10.0) -> dict[str, Any]:
        """Waits until nothing runs or waits any more and returns the stats then.

        Raises:
            TimeoutError: something still runs after ``timeout`` seconds.
        """
        async with asyncio.timeout(timeout):
            while True:
                stats = await self.stats()
                # Before the first step there are no figures, and nothing runs.
                if not (stats.get("requests") or stats["runner_requests"]):
                    return stats
                await asyncio.sleep(0.02)

    async def check_health(self) -> None:
        """Raises EngineUnavailable when the engine core is dead."""
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            await self._engine.check_health()
        except EngineDeadError as error:
            raise EngineUnavailable("the engine is dead") from error

    def shutdown(self) -> None:
        """Ends the engine core process; further calls do nothing."""
        engine = self.__dict__.pop("_engine", None)
        if engine is not None:
            try:
                engine.shutdown()
            finally:
                self._sockets.remove()


def _start_vllm(
    config: EngineConfig,
    model: ModelDirectory,
    stat_loggers: Sequence[Any],
) -> Any:
    # The runner we extend is V1's on every device (docs/architecture.md).
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    on_cpu, workers = current_platform.is_cpu(), config.tensor_parallel_size
    check(config, model.config, model.spec, on_cpu=on_cpu)
    # Named, as vLLM would take Ray's executor inside of a placement group.
    executor: Any = "mp" if workers > 1 else None
    if on_cpu:
        _share_cores(workers)
        if workers == 1:
            # The worker lives in the engine core's process: vLLM's CPU default is one more
            # process, with a message queue and a start-up of its own.
            executor = UniProcExecutor
    optional = {
        "num_gpu_blocks_override": config.kv_blocks,
        "block_size": config.block_size,
        "max_num_batched_tokens": config.max_batched_tokens,
        "max_model_len": config.max_model_len,
        "gpu_memory_utilization": config.gpu_memory_utilization,
        "kv_cache_memory_bytes": config.kv_cache_bytes or (CPU_KV_BYTES if on_cpu else None),
        "quantization": config.quantization,
    }
    args = AsyncEngineArgs(
        model=config.model,
        dtype=cast(Any, config.dtype),
        max_num_seqs=config.max_rows,
        enable_prefix_caching=config.prefix_cache,
        enforce_eager=config.enforce_eager or on_cpu,
        skip_tokenizer_init=True,
        generation_config="vllm",
        async_scheduling=False,
        tensor_parallel_size=workers,
        distributed_executor_backend=executor,
        worker_cls=f"engine_adapter.{'cpu' if on_cpu else 'gpu'}_worker."
        f"Speech{'CPU' if on_cpu else 'GPU'}Worker",
        scheduler_cls="cfg_pairing.scheduler.PairScheduler",
        **{key: value for key, value in optional.items() if value is not None},
    )
    return AsyncLLM.from_engine_args(args, stat_loggers=list(stat_loggers))


def _share_cores(workers: int) -> None:
    """Gives each worker on the CPUs its part of the threads.

    Raises:
        SettingError: there are fewer cores than workers.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < workers:
        raise SettingError(f"tensor_parallel_size: {workers} workers, but only {cores} cores")
    # One core stays free for the front end, the vocoder and HTTP.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (cores - 1) // workers)))
    if workers > 1:
        # vLLM's default wants a NUMA node for each of them, and pins them to the same cores in
        # every engine of a machine.
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
