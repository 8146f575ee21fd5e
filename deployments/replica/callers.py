"""Whether those who wait for a replica's answers still live.

Serve ends a request whose client has left. It does not end those of a front end that was killed:
the engine would speak to nobody, for minutes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS = 2.0  # from one look to the next


class Callers:
    """Those that have requests here, by their names, of which each has one life."""

    def __init__(self, lives: Callable[[str], bool]) -> None:
        """
        Args:
            lives: whether one of that name does; may block.
        """
        self._lives = lives
        self._calls: Counter[str] = Counter()
        self._gone: set[str] = set()

    @contextmanager
    def calling(self, name: str | None) -> Iterator[Callable[[], bool]]:
        """For as long as a request lasts: whether its caller is still there.

        Args:
            name: None: nobody knows, and it counts as there.
        """
        if name is None:
            yield lambda: True
            return
        self._calls[name] += 1
        try:
            yield lambda: name not in self._gone
        finally:
            self._calls[name] -= 1
            if not self._calls[name]:
                del self._calls[name]
                self._gone.discard(name)

    async def watch(self) -> None:
        """Looks for those that are gone, without an end."""
        while True:
            await asyncio.sleep(_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Once, at all that have requests here."""
        for name in list(self._calls):
            if not await asyncio.to_thread(self._lives, name) and name in self._calls:
                self._gone.add(name)
