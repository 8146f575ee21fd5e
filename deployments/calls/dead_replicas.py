"""Replicas that have told this front end that their engines are dead.

An engine does not come back: its replica is replaced, by one with another id. Until routers hear
so from Serve they know it from here.
"""

from __future__ import annotations

_dead: set[str] = set()


def note(replica: str) -> None:
    """One has said so.

    Args:
        replica: Serve's id of it.
    """
    _dead.add(replica)


def is_dead(replica: str) -> bool:
    """Whether one has said so."""
    return replica in _dead
