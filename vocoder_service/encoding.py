"""Encoding for many callers: one clip at a time, away from the event loop, in a bounded queue."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from vocoder_service.busy import EncoderBusy
from vocoder_service.clips import AudioEncoder, Encoded, EncoderLimits, Samples


class EncodingService:
    """Encodes in a thread of its own, beside the one that decodes, so that live streams go on.

    All methods belong to one event loop.
    """

    def __init__(self, encoder: AudioEncoder, max_waiting: int = 64) -> None:
        """``max_waiting`` clips at most wait or are being encoded.

        Raises:
            ValueError: ``max_waiting`` < 1.
        """
        if max_waiting < 1:
            raise ValueError(f"max_waiting must be at least 1, not {max_waiting}")
        self._encoder = encoder
        self._max_waiting = max_waiting
        self._waiting = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")

    @property
    def limits(self) -> EncoderLimits:
        """Of the clips that the encoder takes."""
        return self._encoder.limits

    @property
    def waiting(self) -> int:
        """Clips that wait or are being encoded."""
        return self._waiting

    async def encode(self, samples: Samples) -> Encoded:
        """See ``AudioEncoder.encode``. A cancelled call that still waits is not encoded.

        Raises:
            EncoderBusy: the queue is full.
            ValueError: see ``AudioEncoder.encode``.
        """
        if self._waiting == self._max_waiting:
            raise EncoderBusy(f"{self._waiting} clips are waiting to be encoded")
        self._waiting += 1
        loop = asyncio.get_running_loop()
        work = self._thread.submit(self._encoder.encode, samples)
        # Not when the caller leaves: a clip that is being encoded still takes its time.
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave))
        return await asyncio.wrap_future(work)

    def _leave(self) -> None:
        self._waiting -= 1
