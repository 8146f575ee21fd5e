"""How a modality is sampled where a request does not say, and what values there may be."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TEMPERATURE = 100.0
MAX_COUNT = 2**30
"""Of anything that is counted, ``top_k`` among them."""


@dataclass(frozen=True)
class SamplingDefaults:
    """Sampling of one modality; ``top_k`` 0 and ``top_p`` 1 switch the filter off.

    Raises:
        ValueError: a value is out of range.
    """

    temperature: float
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= MAX_TEMPERATURE:  # not a number is not either
            raise ValueError(f"temperature is {self.temperature!r}, not in 0..{MAX_TEMPERATURE:g}")
        if type(self.top_k) is not int or not 0 <= self.top_k <= MAX_COUNT:
            raise ValueError(f"top_k is {self.top_k!r}, no whole number in 0..{MAX_COUNT}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p!r}, not above 0 and at most 1")
