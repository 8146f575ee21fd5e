"""The vocoder of a replica, as each of its requests uses it."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections.abc import Awaitable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.exceptions import RayActorError

from deployments import tracing
from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.memory import shortage_counted
from deployments.replica.frame_groups import FrameGroups
from vocoder_service.actor import CodecInfo, Decoded
from vocoder_service.load import BusyShare
from vocoder_service.schedule import WindowSchedule

_log = logging.getLogger(__name__)


class Vocoding:
    """Begins and ends streams.

    Attributes:
        load: how busy the vocoder was when it last answered.
    """

    def __init__(
        self,
        vocoder: Any,
        codec: CodecInfo,
        schedule: WindowSchedule,
        first_codec_stream: int,
    ) -> None:
        """
        Args:
            vocoder: handle of a ``VocoderActor``.
            first_codec_stream: streams below it are not the codec's.
        """
        self.codec = codec
        self._vocoder = vocoder
        self._schedule = schedule
        self.first_codec_stream = first_codec_stream
        self.load = BusyShare()
        self._endings: set[asyncio.Task[None]] = set()

    def stream(self, request_id: str, trace: str | None = None) -> VocoderStream:
        """A stream that is not open yet.

        Args:
            request_id: need not be unique: a client may send one twice.
            trace: see ``deployments.tracing``.
        """
        groups = FrameGroups(self._schedule, self.codec.right_context)
        stream_id = f"{request_id}-{uuid.uuid4().hex[:8]}"
        return VocoderStream(stream_id, self, self._vocoder, groups, trace)

    def end(self, stream_id: str) -> None:
        """Has the vocoder forget a stream, whatever becomes of the request it belongs to.

        Ray ends, with a request that it cancels, every call the request has made and that has not
        run yet. This one must run, so it is made in a context of its own.
        """
        task = asyncio.get_running_loop().create_task(
            self._end(stream_id), context=contextvars.Context()
        )
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _end(self, stream_id: str) -> None:
        try:
            await self._vocoder.abort.remote(stream_id)
        except RayActorError as error:  # which takes all its streams with it
            _log.warning("stream %s went with its vocoder: %s", stream_id, error)


class VocoderStream:
    """Frames of one stream in, PCM out.

    Attributes:
        id: unique.
        seconds: spent waiting for the vocoder.
    """

    def __init__(
        self,
        stream_id: str,
        vocoding: Vocoding,
        vocoder: Any,
        groups: FrameGroups,
        trace: str | None,
    ) -> None:
        self.id = stream_id
        self.seconds = 0.0
        self._vocoding = vocoding
        self._vocoder = vocoder
        self._groups = groups
        self._trace = trace

    async def open(self) -> None:
        """Begins it; whoever does must ``abort`` it in the end."""
        await self._vocoder.open.remote(self.id)

    async def add(self, codes: NDArray[np.int32]) -> bytes:
        """Takes codes ``[frames, streams]``; the PCM that is complete, often none.

        Raises:
            VocoderError: it could not be decoded.
        """
        load = self._vocoding.load.value(time.monotonic())
        group = self._groups.add(codes[:, self._vocoding.first_codec_stream :], load)
        if group is None:
            return b""
        return await self._heard(self._vocoder.push.remote(self.id, group))

    async def finish(self) -> bytes:
        """The rest of the PCM.

        Raises:
            VocoderError: it could not be decoded.
        """
        return await self._heard(self._vocoder.finish.remote(self.id, self._groups.rest()))

    def abort(self) -> None:
        """Frees what it holds, if it has not finished."""
        self._vocoding.end(self.id)

    async def _heard(self, answer: Awaitable[Decoded]) -> bytes:
        began = time.monotonic()
        with shortage_counted("vocoder"):
            decoded = await answer
        now = time.monotonic()
        self.seconds += now - began
        emit.observe(d.VOCODER_WAIT_SECONDS, now - began)
        tracing.record("vocoder", self._trace, began, now)
        self._vocoding.load.learn(decoded.load, now)
        return decoded.pcm
