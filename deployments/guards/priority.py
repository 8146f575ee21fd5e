"""The class in which a request waits where no rows are free: its header and its key."""

from __future__ import annotations

from cfg_pairing.admission import PRIORITIES, Priority
from deployments.front_end.errors import ApiError

HEADER = "x-priority-class"
_USUAL: Priority = "standard"


def priority_of(asked: str | None, best: Priority | None) -> Priority:
    """
    Args:
        asked: the header's value.
        best: that the client may have; None: any.

    Raises:
        ApiError: 400, there is no such class; 403, the client may not have it.
    """
    if asked is None:
        return _USUAL if best is None else max(_USUAL, best, key=PRIORITIES.index)
    named = {priority: priority for priority in PRIORITIES}.get(asked)  # type: ignore[call-overload]
    if named is None:
        raise ApiError(
            400, f"{HEADER}: must be {', '.join(PRIORITIES[:-1])} or {PRIORITIES[-1]}", param=HEADER
        )
    if best is not None and PRIORITIES.index(named) < PRIORITIES.index(best):
        raise ApiError(
            403, f"{HEADER}: this key may use class {best!r} at most", param=HEADER, code="priority"
        )
    return named
