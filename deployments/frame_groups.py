"""How many frames to send to the vocoder at once."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from vocoder_service.windows import WindowSchedule


class FrameGroups:
    """Holds the frames of one stream until they complete the vocoder's next window.

    The vocoder could do nothing with them earlier, and a call per frame and stream would
    cost more than the decoding.
    """

    def __init__(self, schedule: WindowSchedule, right_context: int) -> None:
        """
        Args:
            right_context: frames the codec needs behind a window.
        """
        ends = itertools.accumulate(schedule.sizes())
        self._ends = (end + right_context for end in ends)
        self._end = next(self._ends)
        self._frames = 0  # of the whole stream so far
        self._held: list[NDArray[np.int32]] = []

    def add(self, codes: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """Takes codes ``[n, codebooks]``; all that are held, once a window is complete."""
        self._held.append(codes)
        self._frames += len(codes)
        if self._frames < self._end:
            return None
        while self._end <= self._frames:
            self._end = next(self._ends)
        return self._take()

    def rest(self) -> NDArray[np.int32] | None:
        """The frames still held at the end of the stream; None if there are none."""
        group = self._take() if self._held else None
        return group if group is not None and len(group) else None

    def _take(self) -> NDArray[np.int32]:
        group = np.concatenate(self._held)
        self._held = []
        return group
