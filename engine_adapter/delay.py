"""The delay pattern as plain array code.

Frame ``t`` of stream ``s`` stands in row ``t + delay[s]``. Values are opaque here:
ids, codes, anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]


def interleave(frames: Ids, delays: Sequence[int], pads: Sequence[int]) -> Ids:
    """Aligned frames to delayed rows.

    Args:
        frames: int32 ``[T, S]``.
        delays, pads: per stream; holes are filled with the stream's pad.

    Returns:
        int32 ``[T + max(delays), S]``; no rows where there are no frames.
    """
    count = len(frames)
    if count == 0:
        return np.empty((0, len(delays)), dtype=np.int32)
    rows = np.tile(np.asarray(pads, dtype=np.int32), (count + max(delays), 1))
    for stream, delay in enumerate(delays):
        rows[delay : delay + count, stream] = frames[:, stream]
    return rows


def deinterleave(rows: Ids, delays: Sequence[int]) -> Ids:
    """Delayed rows ``[R, S]`` to the frames they complete, ``[max(0, R - max(delays)), S]``."""
    count = max(0, len(rows) - max(delays))
    return np.stack([rows[d : d + count, s] for s, d in enumerate(delays)], axis=1)


class StreamingDeinterleaver:
    """Releases a frame as soon as its last stream has arrived; keeps ``max(delays)`` rows."""

    def __init__(self, delays: Sequence[int]) -> None:
        self._delays = tuple(delays)
        self._held: Ids = np.empty((0, len(self._delays)), dtype=np.int32)

    def push(self, rows: Ids) -> Ids:
        """Takes rows ``[n, S]`` in order; returns the frames they complete ``[m, S]``."""
        held = np.concatenate([self._held, rows])
        frames = deinterleave(held, self._delays)
        self._held = held[len(frames) :]
        return frames
