"""How many frames to send to the vocoder at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vocoder_service.schedule import WindowSchedule


class FrameGroups:
    """Holds the frames of one stream until there are enough for its next window.

    The vocoder decodes what it gets at once: the size of a group decides how soon it is heard,
    and what it costs.
    """

    def __init__(self, schedule: WindowSchedule, right_context: int) -> None:
        """
        Args:
            right_context: frames the codec needs behind a window.
        """
        self._schedule = schedule
        self._sizes = schedule.sizes()
        self._size = next(self._sizes)
        self._missing = right_context  # frames behind the last window that are not here yet
        self._held: list[NDArray[np.int32]] = []
        self._frames = 0  # that are held

    def add(self, codes: NDArray[np.int32], load: float) -> NDArray[np.int32] | None:
        """Takes codes ``[n, codebooks]``; all that are held, once they make a window.

        Args:
            load: share of its time that the vocoder is busy.
        """
        self._held.append(codes)
        self._frames += len(codes)
        if self._frames - self._missing < self._schedule.under_load(self._size, load):
            return None
        self._missing = 0
        self._size = next(self._sizes)
        return self._take()

    def rest(self) -> NDArray[np.int32] | None:
        """The frames still held at the end of the stream; None if there are none."""
        group = self._take() if self._held else None
        return group if group is not None and len(group) else None

    def _take(self) -> NDArray[np.int32]:
        group = np.concatenate(self._held)
        self._held = []
        self._frames = 0
        return group
