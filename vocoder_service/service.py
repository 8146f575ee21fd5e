"""Live streams sharing one vocoder: an asyncio service that batches their windows."""

import asyncio
import logging
import time
import traceback
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vocoder_service.codec import Codec
from vocoder_service.load import BusyShare
from vocoder_service.vocoder import NotFiniteError, Pcm, Vocoder
from vocoder_service.windows import Memory, StreamWindows, Window

_log = logging.getLogger(__name__)


class VocoderError(RuntimeError):
    """A stream, or the vocoder itself, cannot go on."""


class UnknownStreamError(VocoderError):
    """The stream was never opened, or is finished, aborted or failed."""


class StreamAbortedError(VocoderError):
    """The stream was aborted while its windows were waiting or being decoded."""


class DecodeError(VocoderError):
    """A window could not be decoded; its stream is closed."""


@dataclass(frozen=True)
class VocoderStats:
    """Counters since the start, except the two gauges ``live_streams`` and ``queue_depth``."""

    live_streams: int
    queue_depth: int
    """Windows waiting for the batch after the one being decoded."""
    windows_decoded: int
    batches: int
    mean_batch_size: float
    """Windows per batch; 0 before the first."""
    decode_seconds: float
    load: float
    """Share of the last seconds that was spent decoding, 0 to 1."""


@dataclass(frozen=True)
class _Failure:
    """Why a window was not decoded, in words: an exception would keep the memory of the decode."""

    reason: str
    of_stream: bool
    """The stream's codes are at fault, and nothing else."""


@dataclass(eq=False)
class _Job:
    window: Window
    pcm: asyncio.Future[Pcm]


@dataclass(eq=False)
class _Stream:
    id: str
    windows: StreamWindows
    jobs: set[_Job] = field(default_factory=set)


class VocoderService:
    """Decodes the frames of many live streams.

    A window that completes while nothing is being decoded is decoded at once, in a worker thread.
    Windows that complete meanwhile wait and make the next batch together, so batches grow with the
    load and nobody is delayed for the sake of a batch.

    Whoever opens a stream owns it and must finish or abort it. There is no idle timeout: a stream
    may rest for as long as its client reads slowly, and the owner of all streams is the engine
    replica that this service dies with. Calls on one stream are made one after the other, except
    ``abort``. All methods belong to one event loop.
    """

    def __init__(self, codec: Codec, max_window: int = 64, max_batch: int = 32) -> None:
        """``max_window`` frames of each of ``max_batch`` windows bound the memory of a decode.

        A GPU gains from every window up to dozens; a CPU from few, beyond which it only delays the
        streams that wait for the next batch.

        Raises:
            ValueError: either is less than 1.
        """
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, not {max_batch}")
        if max_window < 1:
            raise ValueError(f"max_window must be at least 1, not {max_window}")
        self._vocoder = Vocoder(codec)
        self._max_window = max_window
        self._max_batch = max_batch
        self._streams: dict[str, _Stream] = {}
        self._queue: deque[_Job] = deque()
        # One thread, always the same: OpenMP keeps a pool of workers for each calling thread.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vocoder")
        self._worker: asyncio.Task[None] | None = None
        self._failure: str | None = None
        self._windows_decoded = 0
        self._batches = 0
        self._decode_seconds = 0.0
        self._load = BusyShare()

    def warm_up(self, frames: int) -> None:
        """Decode some frames in the thread that decodes; blocks until then.

        The first decode in it pays for the set-up of the device and its libraries.
        """
        codes = np.zeros((frames, self._vocoder.codec.num_codebooks), np.int64)
        self._thread.submit(self._vocoder.decode_all, codes).result()

    def open(self, stream_id: str) -> None:
        """Begin a stream.

        Raises:
            ValueError: a stream of that id is live.
        """
        if stream_id in self._streams:
            raise ValueError(f"stream {stream_id!r} is already open")
        windows = StreamWindows(self._vocoder.codec, self._max_window)
        self._streams[stream_id] = _Stream(stream_id, windows)

    @property
    def load(self) -> float:
        """Share of the last seconds that was spent decoding, 0 to 1."""
        return self._load.value(time.monotonic())

    async def push(self, stream_id: str, frames: NDArray[np.integer]) -> bytes:
        """Append ``frames`` [n, num_codebooks]; return the PCM that is now complete.

        The result is 16-bit little-endian mono PCM, often empty. A cancelled push closes the
        stream, since the samples it would have returned are lost.

        Raises:
            ValueError: wrong shape or type, or a code out of range; the stream is as before.
            UnknownStreamError: the stream is not open.
            StreamAbortedError: it was aborted meanwhile.
            DecodeError: decoding failed; the stream is closed.
        """
        stream = self._live(stream_id)
        return await self._decode(stream, stream.windows.push(frames))

    async def finish(self, stream_id: str, frames: NDArray[np.integer] | None = None) -> bytes:
        """Append the last ``frames``, if any; return the rest of the PCM and close the stream.

        Raises:
            ValueError, UnknownStreamError, StreamAbortedError, DecodeError: as for ``push``.
        """
        stream = self._live(stream_id)
        pcm = await self._decode(stream, stream.windows.finish(frames))
        self._release(stream)
        return pcm

    def abort(self, stream_id: str) -> None:
        """Close a stream at once; calls that wait for it end with StreamAbortedError.

        Aborting a stream that is not open does nothing.
        """
        if stream_id in self._streams:
            self._release(self._streams[stream_id])

    def stats(self) -> VocoderStats:
        return VocoderStats(
            live_streams=len(self._streams),
            queue_depth=len(self._queue),
            windows_decoded=self._windows_decoded,
            batches=self._batches,
            mean_batch_size=self._windows_decoded / self._batches if self._batches else 0.0,
            decode_seconds=self._decode_seconds,
            load=self.load,
        )

    def check_health(self) -> None:
        """Pass unless nothing of the last batch could be decoded, for no fault of its streams.

        Raises:
            DecodeError: as after a lost device; the process should be replaced.
        """
        if self._failure is not None:
            raise DecodeError(f"the last batch failed: {self._failure}")

    def _live(self, stream_id: str) -> _Stream:
        stream = self._streams.get(stream_id)
        if stream is None or stream.windows.finished:
            raise UnknownStreamError(
                f"stream {stream_id!r} is not open: never opened, or finished, aborted or failed"
            )
        return stream

    def _release(self, stream: _Stream) -> None:
        """Forget ``stream`` and everything that waits for it."""
        if self._streams.get(stream.id) is stream:  # its id may be in use again
            del self._streams[stream.id]
        for job in stream.jobs:
            if not job.pcm.done():
                job.pcm.set_exception(StreamAbortedError(f"stream {stream.id!r} was aborted"))
        self._queue = deque(job for job in self._queue if job not in stream.jobs)

    async def _decode(self, stream: _Stream, windows: Sequence[Window]) -> bytes:
        """Queue ``windows`` and wait for their PCM."""
        loop = asyncio.get_running_loop()
        jobs = [_Job(window, loop.create_future()) for window in windows]
        stream.jobs.update(jobs)
        self._queue.extend(jobs)
        if self._queue and self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            parts = await asyncio.gather(*(job.pcm for job in jobs))
        except BaseException:
            self._release(stream)  # samples are missing: the stream must not go on
            raise
        finally:
            stream.jobs.difference_update(jobs)
        return b"".join(part.astype("<i2").tobytes() for part in parts)

    async def _work(self) -> None:
        """Decode batches until the queue is empty."""
        loop = asyncio.get_running_loop()
        while self._queue:
            size = min(self._max_batch, len(self._queue))
            jobs = [self._queue.popleft() for _ in range(size)]
            began = time.perf_counter()
            try:
                results = await loop.run_in_executor(
                    self._thread, self._decode_batch, [job.window for job in jobs]
                )
            except Exception as error:  # without memory even to say what has failed may fail
                results = [_Failure(_reason(error), of_stream=False)] * size
            seconds = time.perf_counter() - began
            self._decode_seconds += seconds
            self._load.add(seconds, time.monotonic())
            self._batches += 1
            self._windows_decoded += size
            self._failure = _failure_of(results, self._failure)
            for job, result in zip(jobs, results, strict=True):
                if job.pcm.done():
                    continue
                if isinstance(result, _Failure):
                    job.pcm.set_exception(DecodeError(f"a window was not decoded: {result.reason}"))
                else:
                    job.pcm.set_result(result)
        self._worker = None

    def _decode_batch(self, windows: Sequence[Window]) -> list[Pcm | _Failure]:
        """Decode ``windows``; if that fails, each alone, so that only the one at fault fails."""
        try:
            return list(self._vocoder.decode(windows))
        except Exception as error:
            if len(windows) == 1:
                # In words here too: handlers may keep what they are given.
                _log.error("a window was not decoded:\n%s", traceback.format_exc())
                return [_Failure(_reason(error), isinstance(error, NotFiniteError))]
        results: list[Pcm | _Failure] = []
        failed: dict[Memory, _Failure] = {}
        for window in windows:
            # What follows in a stream that has failed cannot be decoded, whatever is wrong with it.
            result = failed.get(window.memory) or self._decode_batch([window])[0]
            if isinstance(result, _Failure):
                failed[window.memory] = result
            results.append(result)
        return results


def _reason(error: Exception) -> str:
    """What went wrong, in words: a ``MemoryError`` may have none of its own."""
    return f"{type(error).__name__}: {error}"


def _failure_of(results: Sequence[Pcm | _Failure], before: str | None) -> str | None:
    """What keeps the vocoder from decoding, by the results of a batch.

    Args:
        before: the same, by the batch before: streams that fail by themselves say nothing of it.
    """
    others = [r for r in results if not (isinstance(r, _Failure) and r.of_stream)]
    if not others:
        return before
    failures = [r.reason for r in others if isinstance(r, _Failure)]
    return failures[0] if len(failures) == len(others) else None
