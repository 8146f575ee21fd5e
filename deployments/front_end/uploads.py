"""Audio that requests bring, decoded beside everything else that a front end does."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deployments.audio.reading import AudioError, AudioTooLong, read_audio
from deployments.front_end.errors import ApiError

_WAITING_PER_READER = 4


class Uploads:
    """Decodes as many recordings at a time as there are cores; a few more may wait.

    With threads of its own: a decoder may take most of a minute, and whatever else is done away
    from the event loop must not wait for it.
    """

    def __init__(self, retry_after: int, readers: int | None = None) -> None:
        """
        Args:
            retry_after: seconds, for a client whose recording finds no place.
            readers: recordings at a time; None: the cores of this process.
        """
        readers = readers or len(os.sched_getaffinity(0))
        self._retry_after = retry_after
        self._pool = ThreadPoolExecutor(readers, thread_name_prefix="uploads")
        self._places = threading.Semaphore(readers * (1 + _WAITING_PER_READER))

    async def read(
        self,
        data: bytes,
        *,
        sample_rate: int,
        max_seconds: float,
        param: str,
        prefix: str | None = None,
        too_long: int = 413,
    ) -> NDArray[np.float32]:
        """Samples of a file, as ``read_audio``.

        Args:
            param: the field it came in.
            prefix: of what is said about the file, beginning with ``param``; None: ``param:``.
            too_long: the status if it is longer than ``max_seconds``.

        Raises:
            ApiError: 400 or ``too_long``, it cannot be used; 429, too many others are decoded.
        """
        prefix = prefix or f"{param}:"
        if not self._places.acquire(blocking=False):
            raise ApiError(
                429,
                f"{param}: too many recordings are being read, and no more fit",
                param=param,
                code="overloaded",
                retry_after=self._retry_after,
            )
        read = partial(read_audio, data, sample_rate=sample_rate, max_seconds=max_seconds)
        work = self._pool.submit(read)
        work.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wrap_future(work)
        except AudioError as error:
            status = too_long if isinstance(error, AudioTooLong) else 400
            raise ApiError(status, f"{prefix} {error}", param=param) from error
