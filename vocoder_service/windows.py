"""Cutting a stream of frames into windows whose decoded bodies join without a seam.

A decoder that is not causal needs frames on both sides of what it decodes. A window is therefore a
*body* (the frames whose samples are wanted) with the codec's left and right context around it; the
samples of the context are cut off after decoding. At the true start and end of a stream there is
no context, and the window must end there too: the decoder pads with zeros at its edges, and the
one-shot decode does the same at the same places. One that mirrors what it decodes needs enough of
it to mirror: nothing is decoded before that much is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vocoder_service.frames import CodecShape, Frames, check_frames

if TYPE_CHECKING:
    import torch  # takes seconds, and who only cuts needs none of it

# Shares of its time that a decoder is busy: below the first, windows are as small as their
# schedule says, from the second on as large as it allows.
_RELAXED, _STRAINED = 0.4, 0.9


@dataclass(frozen=True)
class WindowSchedule:
    """Sizes of the bodies of successive windows of a stream, in frames.

    The first window is small, since nothing is heard before ``first`` + right context frames
    exist; later ones are larger, since the context is decoded again with every window. All are
    larger while the decoder is busy: a larger window costs less per frame, and what a stream
    waits for its frames it does not wait in the decoder's queue.

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


@dataclass(eq=False)
class Memory:
    """What a decoder that remembers keeps of a stream between two of its windows."""

    state: torch.Tensor | None = None
    frame: int = 0
    """The state is that of the frames before this one."""


@dataclass(frozen=True, eq=False)
class Window:
    """Frames to decode at once, and what to cut off the decoded samples.

    ``codes`` is int64 [frames, num_codebooks]. ``at_start`` and ``at_end`` say that the first and
    last frame are those of the stream, so the decoder must see its own edge there.

    A decoder that remembers decodes the windows of a stream once each and in order.
    """

    codes: Frames
    begin: int
    """Index in the stream of the first frame."""
    body_end: int
    """Index in the stream of the frame behind the body."""
    trim_left: int
    trim_right: int
    at_end: bool
    memory: Memory
    """That of the stream."""

    @property
    def at_start(self) -> bool:
        return self.begin == 0


class StreamWindows:
    """Frames of one stream in, windows out: as many frames in each as can be decoded by now.

    Whoever pushes frames so decides how large windows are. The decoded and trimmed windows,
    joined, are the one-shot decode of all frames. Frames that no later window can need are
    dropped: between calls at most left context + right context are kept, or fewer than the frames
    that the first window needs.
    """

    def __init__(self, codec: CodecShape, maximum: int) -> None:
        """
        Args:
            maximum: frames of the body of one window at most.
        """
        self._codec = codec
        self._maximum = maximum
        self._kept: Frames = np.empty((0, codec.num_codebooks), np.int64)
        self._kept_from = 0  # index in the stream of the first kept frame
        self._body = 0  # index in the stream of the first frame of the next body
        self._memory = Memory()
        self.finished = False

    @property
    def kept_frames(self) -> int:
        """Frames held for windows to come."""
        return len(self._kept)

    def push(self, frames: NDArray[np.integer]) -> list[Window]:
        """Append ``frames`` [n, num_codebooks] (n may be 0); return the windows now complete.

        Raises:
            ValueError: wrong shape or type, or a code out of range; nothing was appended.
            RuntimeError: the stream is finished.
        """
        self._check_open()
        codec = self._codec
        self._append(frames)
        windows = []
        decodable = self._end - codec.right_context if self._end >= codec.first_frames else 0
        while self._body < decodable:
            windows.append(self._cut(min(decodable, self._body + self._maximum), at_end=False))
        drop = max(0, self._body - codec.left_context) - self._kept_from
        if drop > 0:
            self._kept = self._kept[drop:].copy()  # a view would keep the whole array alive
            self._kept_from += drop
        return windows

    def finish(self, frames: NDArray[np.integer] | None = None) -> list[Window]:
        """The last window, up to the true end; none if no frame is left to decode.

        Args:
            frames: the last ones, if any, as for ``push``; they share the window, which is longer
                for them than the maximum.

        Raises:
            ValueError: as for ``push``.
            RuntimeError: the stream is finished.
        """
        self._check_open()
        if frames is not None:
            self._append(frames)
        self.finished = True
        windows = [self._cut(self._end, at_end=True)] if self._end > self._body else []
        self._kept = self._kept[:0].copy()
        return windows

    @property
    def _end(self) -> int:
        return self._kept_from + len(self._kept)

    def _append(self, frames: NDArray[np.integer]) -> None:
        codec = self._codec
        new = check_frames(frames, codec.num_codebooks, codec.codebook_size)
        self._kept = np.concatenate([self._kept, new])

    def _check_open(self) -> None:
        if self.finished:
            raise RuntimeError("the stream is finished")

    def _cut(self, body_end: int, at_end: bool) -> Window:
        """The window whose body ends before frame ``body_end``; the next body begins there."""
        codec = self._codec
        start = max(0, self._body - codec.left_context)
        end = body_end
        if not at_end:
            end += codec.right_context
            end = max(end, codec.first_frames) if start == 0 else end
        wanted_end = (body_end - start) * codec.hop_length
        window = Window(
            codes=self._kept[start - self._kept_from : end - self._kept_from],
            begin=start,
            body_end=body_end,
            trim_left=(self._body - start) * codec.hop_length,
            trim_right=0 if at_end else codec.num_samples(end - start) - wanted_end,
            at_end=at_end,
            memory=self._memory,
        )
        self._body = body_end
        return window
