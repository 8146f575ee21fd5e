"""The time of an engine's decode steps, of requests that all run at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from bench.clients import Client, collect
from bench.plan import SKIPPED_STEPS
from bench.window import Window, decode_window

_WARM_UP_FRAMES = 4


class Decoding:
    """Measures clients of one engine, every request with a prompt of its own."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count()

    async def warm_up(self, client: Client, requests: int) -> None:
        """Does once what is only done once."""
        await collect(client, self._take(requests), _WARM_UP_FRAMES)

    async def window(self, client: Client, requests: int, steps: int) -> Window:
        """The steps in which all requests decode; see :func:`bench.window.decode_window`."""
        frames = SKIPPED_STEPS + steps
        arrived = await collect(client, self._take(requests), frames)
        # Row 1 opens audio, so row 1 + frames is the last before the tail.
        return decode_window(arrived, SKIPPED_STEPS, 1 + frames, steps // 4)

    def _take(self, count: int) -> list[int]:
        return list(itertools.islice(self._numbers, count))
