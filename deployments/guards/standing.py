"""Whether a client that was let in may go on, which what stays open for long asks again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Check = Callable[[], Awaitable[None]]


class Standing:
    """The checks of one request that can end otherwise later on, as ``request.state.standing``."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    def add(self, check: Check) -> None:
        """
        Args:
            check: raises the ``ApiError`` that the client would get if it came now.
        """
        self._checks.append(check)

    async def require(self) -> None:
        """
        Raises:
            ApiError: 401, its key does not hold any more; 429, its audio of the day is used up;
                503, that cannot be checked at the moment.
        """
        for check in self._checks:
            await check()
