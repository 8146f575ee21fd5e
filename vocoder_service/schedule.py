"""How large the windows of a stream are to be: who pushes frames into a vocoder decides it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Shares of its time that a decoder is busy: below the first, windows are as small as their
# schedule says, from the second on as large as it allows.
_RELAXED, _STRAINED = 0.4, 0.9


@dataclass(frozen=True)
class WindowSchedule:
    """Sizes of the bodies of successive windows of a stream, in frames.

    The first window is small, since nothing is heard before ``first`` + right context frames
    exist; later ones are larger, since every call of a decoder costs something whatever it
    decodes. All are larger while the decoder is busy: a larger window costs less per frame, and
    what a stream waits for its frames it does not wait in the decoder's queue.

    Audio that is generated with real-time factor r (generation time per audio time, decoding left
    aside) plays without a gap while r is below about 1 / growth: with e(k) the end of window k,
    the e(k + 1) - e(1) = growth * e(k) frames that follow the first window must be generated
    while the e(k) frames before them are played.

    Raises:
        ValueError: not 1 <= first <= maximum, or growth < 1.
    """

    first: int = 8
    growth: float = 1.5
    maximum: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.maximum:
            raise ValueError(
                f"window sizes need 1 <= first <= maximum, not {self.first}, {self.maximum}"
            )
        if not self.growth >= 1:
            raise ValueError(f"windows must not shrink: growth {self.growth} is less than 1")

    def under_load(self, size: int, load: float) -> int:
        """The size to use instead of ``size`` while the decoder is busy.

        Args:
            load: share of its time that the decoder is busy, 0 to 1.
        """
        strain = min(1.0, max(0.0, (load - _RELAXED) / (_STRAINED - _RELAXED)))
        least = self.first + strain * (self.maximum - self.first)
        return max(size, int(least))

    def sizes(self) -> Iterator[int]:
        """Body sizes of window 0, 1, 2, ... without end, of an idle decoder."""
        exact = float(self.first)
        while True:
            yield int(exact)
            exact = min(float(self.maximum), exact * self.growth)
