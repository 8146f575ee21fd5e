"""Decoding windows of streams whose decoder remembers."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from vocoder_service.stages import Run, Stages
from vocoder_service.windows import Memory, Window


class Recalled(NamedTuple):
    """One window behind the sequence model."""

    latents: torch.Tensor
    """[positions, width]: all that the back needs for the body."""
    skipped: int
    """Frames of the window in front of the latents."""
    memory: Memory
    """For the next window of the stream."""


def decode_recalling(
    stages: Stages,
    windows: Sequence[Window],
    codes: torch.Tensor,
    offsets: Sequence[int],
    memories: dict[Memory, Memory],
) -> tuple[torch.Tensor, list[int]]:
    """Decode one window of each of several streams.

    Args:
        codes: [windows, codebooks, frames], padded.
        offsets: frames of padding in front of each window.
        memories: what streams remember by now, if not what they did; the windows' are added.

    Returns:
        Audio [windows, samples], and the frame at which each window begins in it. That is before
        the audio where the front's context was left out.
    """
    rate = stages.per_frame
    hidden = [
        row[offset * rate : (offset + len(window.codes)) * rate]
        for row, window, offset in zip(
            stages.front(codes).transpose(1, 2), windows, offsets, strict=True
        )
    ]
    known = [memories.get(window.memory, window.memory) for window in windows]
    recalled = recall(stages, windows, known, hidden)
    for window, result in zip(windows, recalled, strict=True):
        memories[window.memory] = result.memory
    latents = [result.latents for result in recalled]
    padded, paddings = pad(latents, windows, max(map(len, latents)))
    begins = [
        padding // rate - result.skipped for padding, result in zip(paddings, recalled, strict=True)
    ]
    return stages.back(padded), begins


def recall(
    stages: Stages,
    windows: Sequence[Window],
    memories: Sequence[Memory],
    hidden: Sequence[torch.Tensor],
) -> list[Recalled]:
    """Have the sequence model read on in ``windows``, which are of different streams.

    It reads a window in two parts: up to where the next window begins to read, after which its
    state is remembered, and from there on. The second part will be read again.

    Args:
        memories: of the streams; they are left as they are.
        hidden: inputs of the sequence model for each whole window, [positions, width].

    Raises:
        RuntimeError: the stream's last window was not the one before this.
    """
    rate = stages.per_frame
    skips, new, ahead = [], [], []
    for window, memory, row in zip(windows, memories, hidden, strict=True):
        skipped = 0 if window.at_start else stages.front_left
        begin = window.begin + skipped
        if memory.frame != begin:
            raise RuntimeError(
                f"the stream is remembered up to frame {memory.frame}, not to frame {begin}"
            )
        split = max(begin, _next_begin(stages, window)) - window.begin
        end = len(window.codes) - (0 if window.at_end else stages.front_right)
        skips.append(skipped)
        new.append(Run(row[skipped * rate : split * rate], begin * rate, memory.state))
        ahead.append((row[split * rate : end * rate], window.begin + split))
    first = stages.advance(new)
    second = stages.advance(
        [
            Run(row, frame * rate, state if frame else None)
            for (row, frame), (_, state) in zip(ahead, first, strict=True)
        ]
    )
    return [
        Recalled(
            torch.cat([before, after]),
            skipped,
            Memory(state, frame) if frame else Memory(),
        )
        for skipped, (_, frame), (before, state), (after, _) in zip(
            skips, ahead, first, second, strict=True
        )
    ]


def _next_begin(stages: Stages, window: Window) -> int:
    """Index in the stream of the frame at which the next window begins to read."""
    if window.at_end or window.body_end <= stages.left_context:
        return 0
    return window.body_end - stages.back_left


def pad(
    rows: Sequence[torch.Tensor], windows: Sequence[Window], length: int
) -> tuple[torch.Tensor, list[int]]:
    """Rows [n, width] of ``windows`` as [windows, width, length], and where in it each begins.

    Zeros stand behind a row, or in front of it where it is the end of its stream.
    """
    padded = rows[0].new_zeros(len(rows), length, rows[0].shape[1])
    offsets = []
    for target, row, window in zip(padded, rows, windows, strict=True):
        offset = length - len(row) if window.at_end else 0
        target[offset : offset + len(row)] = row
        offsets.append(offset)
    return padded.transpose(1, 2), offsets
