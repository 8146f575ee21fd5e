"""The engine replica: a speech engine and, beside it, the vocoder that it feeds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import ray
from numpy.typing import NDArray
from ray import serve
from ray.exceptions import RayError
from ray.serve._private.constants import SERVE_NAMESPACE

from cfg_pairing.admission import AdmissionQueue
from cfg_pairing.autoscaling import ReplicaSignals
from cfg_pairing.routing import LoadReport
from deployments import tracing
from deployments.audio.pcm import seconds_of
from deployments.calls.answer_messages import AnswerCall, AnswerEvent, Codes
from deployments.calls.demand import Call, audio_seconds, rows_of
from deployments.calls.messages import (
    Accepted,
    Dead,
    FirstAudio,
    Queued,
    Refused,
    SpeechCall,
    SpeechEvent,
)
from deployments.guards import logs
from deployments.metrics import emit
from deployments.metrics.replica_figures import ReplicaFigures
from deployments.metrics.sinks import RaySink
from deployments.models import gpu_memory
from deployments.models.directory import locate
from deployments.replica.answering import Answerer
from deployments.replica.callers import Callers
from deployments.replica.gate import Gate, Pace, Visit
from deployments.replica.narration import Narrator, utterance_seed
from deployments.replica.utterance_requests import utterance_request
from deployments.replica.vocoding import Vocoding
from deployments.settings import ModelSettings, TracingSettings
from engine_adapter.request import (
    EngineUnavailable,
    RequestError,
    ResolvedRequest,
    resolve_seed,
)

if TYPE_CHECKING:
    from engine_adapter.checkpoint import ModelDirectory
    from vocoder_service.actor import CodesEncoder, EmbeddingEncoder

# Fields of the engine's requests whose name in the API is another.
_API_NAMES = {
    "text": "input",
    "prompt_ids": "input",
    "turns": "voice",
    "max_frames": "max_duration_seconds",
}


_Event = TypeVar("_Event")


class EngineReplica:
    """Speaks, for as many requests at a time as it has rows; others wait in its queue.

    The vocoder is a child actor: Ray puts it into this replica's placement group, so that
    both share a device, and ends it with this replica.
    """

    async def __init__(  # type: ignore[misc]
        self, settings: ModelSettings, spans: TracingSettings
    ) -> None:
        """Starts both and waits until they answer, which takes tens of seconds.

        Raises:
            CheckpointError: the model directory is not complete.
            GpuMemoryError: its weights do not fit into its share of the GPU.
        """
        logs.configure()  # before vLLM does
        emit.use(RaySink(), model=settings.id)
        tracing.begin(spans, "engine")
        # Here, so that whoever builds the application need not load torch.
        from deployments.metrics.vllm_figures import VllmFigures
        from engine_adapter.checkpoint import ModelDirectory
        from engine_adapter.engine import SpeechEngine
        from vocoder_service.actor import VocoderActor

        model = ModelDirectory.open(locate(settings.path))
        vocoder, spec = settings.vocoder, model.spec
        codebooks = spec.num_streams - spec.codec_first_stream
        if settings.engine.gpus:
            weights = gpu_memory.weight_bytes(model.path, settings.engine)
            gpu_memory.require_room(settings, weights, _gpu_bytes())
        if settings.shares_gpu:
            weights = gpu_memory.vocoder_bytes(model.path)
            gpu_memory.require_vocoder_room(settings, weights, _gpu_bytes())
        # First, so that it loads while the engine does.
        self._vocoder = VocoderActor.options(num_cpus=vocoder.cpus, num_gpus=vocoder.gpus).remote(
            str(model.codec),
            vocoder.max_window,
            vocoder.max_batch,
            device="cuda" if vocoder.gpus else "cpu",
            num_codebooks=codebooks,
            memory_share=vocoder.gpu_memory_utilization if settings.shares_gpu else None,
            encoder=_encoder(model),
        )
        self._engine = SpeechEngine(settings.engine.config(model.path), stat_loggers=[VllmFigures])
        self._codec = await self._vocoder.ready.remote()
        vocoding = Vocoding(self._vocoder, self._codec, vocoder.schedule(), spec.codec_first_stream)
        self._narrator = Narrator(self._engine, vocoding)
        limits = await self._vocoder.encoder_limits.remote()
        self._answerer = Answerer(self._engine, self._vocoder, vocoding, limits)
        self._gate = Gate(
            AdmissionQueue(
                settings.engine.max_rows,
                settings.max_concurrent_requests,
                settings.admission.classes,
                settings.admission.max_waiting,
            )
        )
        self._reports = count()
        self._pace = Pace(self._gate)
        figures = ReplicaFigures(
            self._gate,
            self._answerer.clips,
            self._engine,
            self._vocoder,
            settings.max_concurrent_requests,
        )
        self._figures = asyncio.create_task(figures.keep())
        self._callers = Callers(_lives)
        self._watch = asyncio.create_task(self._callers.watch())

    async def speak(
        self, call: SpeechCall, caller: str | None = None
    ) -> AsyncIterator[SpeechEvent]:
        """The events of one request: ``Accepted``, PCM, ``Finished``; or, before any PCM,
        ``Refused``. ``Queued`` comes first if it has to wait.

        Closing it, which Serve does when the client has left, ends the request in the
        engine and in the vocoder.

        Args:
            caller: name of the Ray actor that asks; the request ends when it is gone.

        Raises:
            GenerationError: the engine could not finish the request.
            VocoderError: its audio could not be decoded.
        """
        try:
            seed = resolve_seed(call.seed)
            resolved = self._prepare(call, seed)
        except RequestError as error:
            yield _refusal(error)
            return
        speech = self._speech(call, seed, resolved)
        async with aclosing(self._admitted(call, speech, caller)) as events:
            async for event in events:
                yield event

    async def answer(
        self, call: AnswerCall, caller: str | None = None
    ) -> AsyncIterator[AnswerEvent]:
        """The events of one request: ``Accepted``, text and PCM, ``Answered``; or, before any
        of these, ``Refused``. ``Queued`` comes first if it has to wait. Closing it, or the end of
        its ``caller``, ends the request, as for ``speak``.

        Raises:
            GenerationError: the engine could not finish the request.
            VocoderError: its audio could not be decoded.
        """
        answer = self._answerer.answer(call)
        async with aclosing(self._admitted(call, answer, caller)) as events:
            async for event in events:
                yield event

    async def encode(self, samples: NDArray[np.float32]) -> Codes:
        """Codes ``[frames, streams]`` of mono audio ``[samples]`` at the codec's rate.

        Raises:
            EncoderBusy: too many clips are waiting.
        """
        return await self._answerer.encode(samples)

    async def check_health(self) -> None:
        """Passes while engine and vocoder answer; Serve replaces a replica that fails.

        The engine answers between two steps: one whose step never ends does not, and Serve's
        time for this runs out.

        Raises:
            Exception: either is dead.
        """
        await self._engine.check_health()
        await asyncio.gather(self._engine.stats(), self._vocoder.check_health.remote())

    async def stats(self) -> dict[str, Any]:
        """Counters and gauges of ``engine``, ``vocoder`` and ``requests`` (live ones)."""
        engine, vocoder = await asyncio.gather(self._engine.stats(), self._vocoder.stats.remote())
        queue = self._gate.queue
        return {
            "engine": engine,
            "vocoder": asdict(vocoder),
            "requests": queue.running,
            "waiting": queue.waiting(),
        }

    async def record_routing_stats(self) -> dict[str, Any]:
        """A ``LoadReport`` for the routers; Serve asks every second."""
        queue, kv_share, lives = self._gate.queue, 0.0, True
        try:
            engine = await self._engine.stats()
        except EngineUnavailable:
            lives = False
        else:
            total = engine.get("blocks_total", 0)
            kv_share = engine["blocks_in_use"] / total if total else 0.0
        report = LoadReport(
            next(self._reports), queue.wanted_rows(), queue.rows, kv_share, lives=lives
        )
        return asdict(report)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """``ReplicaSignals`` for the policy; Serve asks twice a second if it scales."""
        queue, now = self._gate.queue, time.monotonic()
        signals = ReplicaSignals(
            rows=queue.wanted_rows(),
            waiting_rows=queue.waiting_rows(),
            capacity=queue.rows,
            queue_age=queue.oldest(now),
            audio_owed=self._gate.audio_owed,
            audio_rate=self._pace.audio_rate(now),
        )
        return {name: float(value) for name, value in asdict(signals).items()}

    def __del__(self) -> None:
        # Serve calls it when the replica stops; its engine is a process of its own.
        if hasattr(self, "_figures"):
            self._figures.cancel()
        if hasattr(self, "_watch"):
            self._watch.cancel()
        if hasattr(self, "_engine"):
            self._engine.shutdown()
        tracing.end()

    async def _admitted(
        self, call: Call, events: AsyncGenerator[_Event, None], caller: str | None
    ) -> AsyncGenerator[_Event | Dead | Queued | Refused, None]:
        """The events of a request once it has a place here, or why it has none."""
        try:
            await self._engine.check_health()
        except EngineUnavailable:
            yield Dead(serve.get_replica_context().replica_id.unique_id)
            return
        visit = Visit(audio_seconds(call))
        rows = rows_of(call, self._engine.spec.cfg_scale)
        passing = self._gate.pass_through(events, call.priority, rows, visit)
        try:
            async with aclosing(passing):
                with self._callers.calling(caller) as still_there:
                    async for event in passing:
                        if not still_there():
                            return
                        self._gate.made(visit, self._seconds(event))
                        yield event
        except EngineUnavailable as error:
            yield Refused(503, str(error))

    def _seconds(self, event: object) -> float:
        """Of audio in an event."""
        pcm = event.pcm if isinstance(event, FirstAudio) else event
        if not isinstance(pcm, bytes):
            return 0.0
        return seconds_of(pcm, self._codec.sample_rate)

    async def _speech(
        self, call: SpeechCall, seed: int, resolved: list[ResolvedRequest]
    ) -> AsyncGenerator[SpeechEvent, None]:
        yield Accepted(seed, self._codec.sample_rate)
        pauses = [utterance.pause for utterance in call.utterances]
        events = self._narrator.speak(
            call.request_id, resolved, pauses, self._frames(call.max_seconds), call.trace
        )
        async with aclosing(events):
            async for event in events:
                yield event

    def _prepare(self, call: SpeechCall, seed: int) -> list[ResolvedRequest]:
        """All utterances, checked before anything is promised.

        Raises:
            RequestError: one cannot be spoken as it is asked.
        """
        spec, tokenizer = self._engine.spec, self._engine.tokenizer
        return [
            self._engine.prepare(
                utterance_request(
                    spec,
                    tokenizer,
                    call,
                    utterance.text,
                    utterance_seed(seed, call.first_index + index),
                )
            )
            for index, utterance in enumerate(call.utterances)
        ]

    def _frames(self, seconds: float | None) -> int | None:
        if seconds is None:
            return None
        return max(1, int(seconds * self._codec.sample_rate / self._codec.hop_length))


def _encoder(model: ModelDirectory) -> CodesEncoder | EmbeddingEncoder | None:
    """Of the audio that comes in; None: the model takes none, or lacks its encoder."""
    from vocoder_service.actor import CodesEncoder, EmbeddingEncoder

    if model.audio_encoder is not None:
        return EmbeddingEncoder(str(model.audio_encoder), model.config["hidden_size"])
    if not model.spec.takes_audio or model.spec.deafness_in(model.path) is not None:
        return None
    return CodesEncoder(str(model.codec), None if model.ssl is None else str(model.ssl))


def _lives(actor: str) -> bool:
    """Whether Serve has an actor of that name, as far as Ray can tell."""
    try:
        ray.get_actor(actor, namespace=SERVE_NAMESPACE)  # that of the job depends on who deploys
    except ValueError:
        return False
    except RayError:  # Ray itself does not answer
        return True
    return True


def _gpu_bytes() -> int:
    """Memory of this replica's GPU."""
    from vllm.platforms import current_platform

    return int(current_platform.get_device_total_memory())


def _refusal(error: RequestError) -> Refused:
    param = _API_NAMES.get(error.param, error.param)
    message = str(error).removeprefix(f"{error.param}: ")
    return Refused(400, f"{param}: {message}", param)
