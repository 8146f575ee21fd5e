"""What a part of the benchmark is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

Profile = Literal["quick", "full"]
PROFILES: tuple[Profile, ...] = ("quick", "full")

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """The circumstances of a measurement.

    Attributes:
        device: ``cpu`` or ``cuda``.
        url: of a running service; for parts that measure one.
    """

    profile: Profile
    device: str
    url: str = ""

    def choose(self, quick: T, full: T) -> T:
        """The value of the profile."""
        return quick if self.profile == "quick" else full
