"""Which tests stay in one process, where several processes share them.

An engine takes a quarter of a minute to start and a service a whole one, so tests that use the
same one stay together.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

from engine_adapter.families import FAMILIES

_ENGINES, _SERVICES = PurePosixPath("tests/engine"), PurePosixPath("tests/serve")
_OF_THEIR_OWN = {
    "test_chart",
    "test_demo_voice",
    "test_guards",
    "test_routing",
    "test_starting",
    "test_vocoder_actor",
}
"""Modules of ``tests/serve`` that start what they need themselves. A folder in it has a
service."""


def group(nodeid: str) -> str:
    """What a test shares with all that have the same."""
    file, _, name = nodeid.partition("::")
    path = PurePosixPath(file)
    if path.parent.parent == _SERVICES:
        return str(path.parent)
    if path.parent == _SERVICES and path.stem not in _OF_THEIR_OWN:
        return "the service"
    if path.parent == _ENGINES:
        parameters = name.partition("[")[2]
        # Of two names that begin alike the longer one.
        for family in sorted(FAMILIES, key=len, reverse=True):
            if family in parameters:
                return family
    return file


class Sharing(LoadScopeScheduling):
    """Gives a process all tests of a group."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
