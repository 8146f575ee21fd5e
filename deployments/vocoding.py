"""The vocoder of a replica, as each of its requests uses it."""

from __future__ import annotations

import time
import uuid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deployments.frame_groups import FrameGroups
from vocoder_service.actor import CodecInfo, Decoded
from vocoder_service.load import BusyShare
from vocoder_service.windows import WindowSchedule


class Vocoding:
    """Begins streams, and remembers how busy the vocoder was."""

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
        self._first_codec_stream = first_codec_stream
        self._load = BusyShare()

    def stream(self, request_id: str) -> VocoderStream:
        """A stream that is not open yet.

        Args:
            request_id: need not be unique: a client may send one twice.
        """
        groups = FrameGroups(self._schedule, self.codec.right_context)
        stream_id = f"{request_id}-{uuid.uuid4().hex[:8]}"
        return VocoderStream(stream_id, self._vocoder, groups, self._first_codec_stream, self._load)


class VocoderStream:
    """Frames of one stream in, PCM out.

    Attributes:
        id: unique.
    """

    def __init__(
        self,
        stream_id: str,
        vocoder: Any,
        groups: FrameGroups,
        first_codec_stream: int,
        load: BusyShare,
    ) -> None:
        self.id = stream_id
        self._vocoder = vocoder
        self._groups = groups
        self._first = first_codec_stream
        self._load = load

    async def open(self) -> None:
        """Begins it; whoever does must ``abort`` it in the end."""
        await self._vocoder.open.remote(self.id)

    async def add(self, codes: NDArray[np.int32]) -> bytes:
        """Takes codes ``[frames, streams]``; the PCM that is complete, often none.

        Raises:
            VocoderError: it could not be decoded.
        """
        load = self._load.value(time.monotonic())
        group = self._groups.add(codes[:, self._first :], load)
        if group is None:
            return b""
        return self._heard(await self._vocoder.push.remote(self.id, group))

    async def finish(self) -> bytes:
        """The rest of the PCM.

        Raises:
            VocoderError: it could not be decoded.
        """
        return self._heard(await self._vocoder.finish.remote(self.id, self._groups.rest()))

    def abort(self) -> None:
        """Frees what it holds, if it has not finished."""
        self._vocoder.abort.remote(self.id)

    def _heard(self, decoded: Decoded) -> bytes:
        self._load.learn(decoded.load, time.monotonic())
        return decoded.pcm
