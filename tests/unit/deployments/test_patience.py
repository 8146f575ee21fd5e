"""Works of several requests, some of which find no room at first."""

from types import SimpleNamespace

import pytest

from deployments.calls import patience
from deployments.calls.patience import patiently
from deployments.front_end.errors import ApiError

FULL = ApiError(429, "full", retry_after=7)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited, without waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(patience, "asyncio", SimpleNamespace(sleep=sleep))
    return found


async def begin_after(errors: list[ApiError]) -> str:
    async def begin() -> str:
        if errors:
            raise errors.pop(0)
        return "begun"

    return await patiently(begin)


async def test_it_waits_as_long_as_it_is_told_each_time(waits: list[float]) -> None:
    assert await begin_after([FULL, ApiError(429, "full", retry_after=2)]) == "begun"
    assert waits == [7, 2]


@pytest.mark.parametrize(
    ("errors", "waited"),
    [
        ([FULL] * 10, [7] * 9),
        ([FULL, ApiError(503, "no engine", retry_after=7)], [7]),
        ([ApiError(429, "never")], []),
    ],
)
async def test_it_gives_up(waits: list[float], errors: list[ApiError], waited: list[int]) -> None:
    last = errors[-1]
    with pytest.raises(ApiError) as given_up:
        await begin_after(list(errors))
    assert given_up.value is last
    assert waits == waited
