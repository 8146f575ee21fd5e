"""Cutting a stream of frames into windows.

A window is frames that are decoded at once. Every frame is in one window: what a decoder must know
of the frames before is in the stream's memory, and what it cannot decode before it knows those that
follow, it decodes with the next window. The end of a stream is a window too, if only to say so.

A decoder can only begin once one sample of a stream is determined, or the stream has ended before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vocoder_service.frames import CodecShape, Frames, check_frames

if TYPE_CHECKING:
    from vocoder_service.kept import Kept  # loads torch, which who only cuts need not


@dataclass(eq=False)
class Memory:
    """What a decoder keeps of a stream between two of its windows."""

    state: Kept | None = None
    frame: int = 0
    """The state is that of the frames before this one."""


@dataclass(frozen=True, eq=False)
class Window:
    """Frames to decode at once.

    ``codes`` is int64 [frames, num_codebooks]; the last window of a stream may have none. The
    windows of a stream are decoded once each and in order.
    """

    codes: Frames
    begin: int
    """Index in the stream of the first frame."""
    at_end: bool
    """The last frame is that of the stream."""
    memory: Memory
    """That of the stream."""

    @property
    def at_start(self) -> bool:
        return self.begin == 0

    @property
    def end(self) -> int:
        """Index in the stream of the frame behind the last."""
        return self.begin + len(self.codes)


class StreamWindows:
    """Frames of one stream in, windows out.

    Whoever pushes frames so decides how large windows are. The decoded windows, joined, are the
    one-shot decode of all frames. Only the first frames are kept, until the decoder can begin.
    """

    def __init__(self, codec: CodecShape, maximum: int) -> None:
        """
        Args:
            maximum: frames of one window at most, unless the decoder needs more to begin.
        """
        self._codec = codec
        self._maximum = maximum
        self._kept: Frames = np.empty((0, codec.num_codebooks), np.int64)
        self._end = 0  # frames that are in windows
        self._memory = Memory()
        self.finished = False

    def push(self, frames: NDArray[np.integer]) -> list[Window]:
        """Append ``frames`` [n, num_codebooks] (n may be 0); return the windows now complete.

        Raises:
            ValueError: wrong shape or type, or a code out of range; nothing was appended.
            RuntimeError: the stream is finished.
        """
        self._check_open()
        rest = self._with_kept(frames)
        windows = []
        least = self._codec.first_frames if self._end == 0 else 1
        while len(rest) >= least:
            size = max(least, self._maximum)
            windows.append(self._window(rest[:size], at_end=False))
            rest, least = rest[size:], 1
        self._kept = rest.copy()  # a view would keep the whole array alive
        return windows

    def finish(self, frames: NDArray[np.integer] | None = None) -> list[Window]:
        """The last window, up to the true end; none if nothing is left to decode.

        Args:
            frames: the last ones, if any, as for ``push``; they share the window, which is longer
                for them than the maximum.

        Raises:
            ValueError: as for ``push``.
            RuntimeError: the stream is finished.
        """
        self._check_open()
        rest = self._kept if frames is None else self._with_kept(frames)
        self.finished = True
        self._kept = self._kept[:0].copy()
        if len(rest) == 0 and (self._end == 0 or self._codec.right_context == 0):
            return []
        return [self._window(rest, at_end=True)]

    def _with_kept(self, frames: NDArray[np.integer]) -> Frames:
        codec = self._codec
        new = check_frames(frames, codec.num_codebooks, codec.codebook_size)
        return np.concatenate([self._kept, new])

    def _check_open(self) -> None:
        if self.finished:
            raise RuntimeError("the stream is finished")

    def _window(self, codes: Frames, at_end: bool) -> Window:
        window = Window(codes, self._end, at_end, self._memory)
        self._end = window.end
        return window
