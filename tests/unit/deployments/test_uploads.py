"""Audio that requests bring: how much of it is decoded at a time, and in whose threads."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from deployments.front_end import uploads
from deployments.front_end.errors import ApiError
from deployments.front_end.uploads import Uploads


async def test_decoding_has_threads_of_its_own_and_a_queue_that_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, begun = threading.Event(), []

    def slow(*_: Any, **__: Any) -> Any:
        begun.append(threading.current_thread().name)
        release.wait()
        return np.zeros(3, np.float32)

    monkeypatch.setattr(uploads, "read_audio", slow)
    reader = Uploads(retry_after=7, readers=1)

    async def read() -> int:
        return len(await reader.read(b"", sample_rate=8000, max_seconds=1, param="file"))

    reading = [asyncio.create_task(read()) for _ in range(5)]
    try:
        await asyncio.sleep(0.05)
        with pytest.raises(ApiError, match=r"^file: too many") as full:
            await read()
        assert (full.value.status, full.value.param) == (429, "file")
        assert full.value.retry_after == 7
        assert [name[:7] for name in begun] == ["uploads"]  # the others wait for it
        reading.pop().cancel()  # its client has left
        await asyncio.sleep(0.05)
        reading.append(asyncio.create_task(read()))
        await asyncio.sleep(0.05)
    finally:
        release.set()
    assert await asyncio.gather(*reading) == [3] * 5
    assert await read() == 3
