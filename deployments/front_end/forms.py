"""Multipart forms of which nothing is ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from deployments.front_end.errors import ApiError


def check_fields(
    sent: Iterable[tuple[str, Any]], known: Collection[str], repeated: Collection[str] = ()
) -> None:
    """
    Args:
        sent: what the client sent, in its order.
        repeated: fields that may come more than once.

    Raises:
        ApiError: 400, a field is unknown, or comes more often than it may.
    """
    seen = set()
    for name, _ in sent:
        if name not in known:
            raise ApiError(400, f"{name}: is not a known field", param=name)
        if name in seen and name not in repeated:
            raise ApiError(400, f"{name}: comes more than once", param=name)
        seen.add(name)
