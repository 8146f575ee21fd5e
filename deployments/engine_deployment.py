"""The engine replica: a speech engine and, beside it, the vocoder that it feeds."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from deployments.frame_groups import FrameGroups
from deployments.messages import Accepted, Finished, Refused, SpeechCall, SpeechEvent
from deployments.model_directory import locate
from deployments.settings import ModelSettings
from engine_adapter.request import (
    EngineUnavailable,
    FinishReason,
    RequestError,
    ResolvedRequest,
    SpeechRequest,
)

# Fields of the engine's requests whose name in the API is another.
_API_NAMES = {"text": "input", "max_frames": "max_duration_seconds"}


class EngineReplica:
    """Speaks, for up to ``max_concurrent_requests`` requests at a time.

    The vocoder is a child actor: Ray puts it into this replica's placement group, so that
    both share a device, and ends it with this replica.
    """

    async def __init__(self, settings: ModelSettings) -> None:  # type: ignore[misc]
        """Starts both and waits until they answer, which takes tens of seconds.

        Raises:
            CheckpointError: the model directory is not complete.
        """
        # Here, so that whoever builds the application need not load torch.
        from engine_adapter.checkpoint import ModelDirectory
        from engine_adapter.engine import EngineConfig, SpeechEngine
        from vocoder_service.actor import VocoderActor

        model = ModelDirectory.open(locate(settings.path))
        vocoder, spec = settings.vocoder, model.spec
        codebooks = spec.num_streams - spec.codec_first_stream
        self._schedule = vocoder.schedule()
        # First, so that it loads while the engine does.
        self._vocoder = VocoderActor.options(num_cpus=vocoder.cpus, num_gpus=vocoder.gpus).remote(
            str(model.codec),
            self._schedule,
            vocoder.max_batch,
            device="cuda" if vocoder.gpus else "cpu",
            num_codebooks=codebooks,
        )
        self._first_codec_stream = spec.codec_first_stream
        self._engine = SpeechEngine(
            EngineConfig(
                model=str(model.path), **settings.engine.model_dump(exclude={"cpus", "gpus"})
            )
        )
        self._codec = await self._vocoder.ready.remote()
        self._max_live = settings.max_concurrent_requests
        self._live = 0

    async def speak(self, call: SpeechCall) -> AsyncIterator[SpeechEvent]:
        """The events of one request: ``Accepted``, PCM, ``Finished``; or, before any PCM,
        ``Refused``.

        Closing it, which Serve does when the client has left, ends the request in the
        engine and in the vocoder.

        Raises:
            GenerationError: the engine could not finish the request.
            VocoderError: its audio could not be decoded.
        """
        if self._live >= self._max_live:
            yield Refused(429, f"{self._live} requests are being served, and no more fit")
            return
        try:
            resolved = self._engine.prepare(self._request(call))
        except RequestError as error:
            yield _refusal(error)
            return
        self._live += 1
        try:
            yield Accepted(resolved.seed, self._codec.sample_rate)
            async with aclosing(self._generate(call.request_id, resolved)) as events:
                async for event in events:
                    yield event
        except EngineUnavailable as error:
            yield Refused(503, str(error))
        finally:
            self._live -= 1

    async def check_health(self) -> None:
        """Passes while engine and vocoder answer; Serve replaces a replica that fails.

        Raises:
            Exception: either is dead.
        """
        await asyncio.gather(self._engine.check_health(), self._vocoder.check_health.remote())

    async def stats(self) -> dict[str, Any]:
        """Counters and gauges of ``engine``, ``vocoder`` and ``requests`` (live ones)."""
        engine, vocoder = await asyncio.gather(self._engine.stats(), self._vocoder.stats.remote())
        return {"engine": engine, "vocoder": asdict(vocoder), "requests": self._live}

    def __del__(self) -> None:
        # Serve calls it when the replica stops; its engine is a process of its own.
        if hasattr(self, "_engine"):
            self._engine.shutdown()

    def _request(self, call: SpeechCall) -> SpeechRequest:
        frames = None
        if call.max_seconds is not None:
            rate = self._codec.sample_rate / self._codec.hop_length
            frames = max(1, int(call.max_seconds * rate))
        return SpeechRequest(
            text=call.text,
            voice=call.voice if self._engine.spec.voices else None,
            cfg_scale=call.cfg_scale,
            seed=call.seed,
            temperature=call.temperature,
            top_k=call.top_k,
            top_p=call.top_p,
            max_frames=frames,
        )

    async def _generate(
        self, request_id: str, resolved: ResolvedRequest
    ) -> AsyncGenerator[bytes | Finished, None]:
        stream_id = f"{request_id}-{uuid.uuid4().hex[:8]}"  # a client may send an id twice
        frames = FrameGroups(self._schedule, self._codec.right_context)
        reason: FinishReason | None = None
        chunks = self._engine.stream(resolved, stream_id)
        try:
            await self._vocoder.open.remote(stream_id)
            async for chunk in chunks:
                reason = chunk.finish_reason
                group = frames.add(chunk.codes[:, self._first_codec_stream :])
                if group is not None and (pcm := await self._vocoder.push.remote(stream_id, group)):
                    yield pcm
            rest = frames.rest()
            pcm = b"" if rest is None else await self._vocoder.push.remote(stream_id, rest)
            pcm += await self._vocoder.finish.remote(stream_id)
            if pcm:
                yield pcm
        finally:
            await chunks.aclose()
            self._vocoder.abort.remote(stream_id)
        assert reason is not None, "the engine's last chunk has a reason"
        yield Finished(reason)


def _refusal(error: RequestError) -> Refused:
    param = _API_NAMES.get(error.param, error.param)
    message = str(error).removeprefix(f"{error.param}: ")
    return Refused(400, f"{param}: {message}", param)
