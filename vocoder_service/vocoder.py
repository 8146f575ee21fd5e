"""Decoding windows of many streams together, exactly."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vocoder_service.codec import Codec
from vocoder_service.kept import stacked, unstacked
from vocoder_service.windows import Memory, StreamWindows, Window

Pcm = NDArray[np.int16]
"""Mono samples, int16 [samples]."""

_LONG_WINDOW = 500


class NotFiniteError(ValueError):
    """A stream's codes became samples that are no numbers, or infinite."""


def to_int16(audio: torch.Tensor) -> torch.Tensor:
    """The one definition of float to 16-bit PCM: clip to [-1, 1], scale by 32767, round.

    Raises:
        NotFiniteError: a sample is not a number or infinite.
    """
    if not torch.isfinite(audio).all():
        raise NotFiniteError("the codec produced samples that are not finite")
    return (audio.clamp(-1.0, 1.0) * 32767.0).round().to(torch.int16)


class Vocoder:
    """Turns windows of codes into PCM.

    Windows share a call of the codec if they have as many frames and are at the same edges of their
    streams. Others do not: what a layer remembers, or adds at an edge, has its place beside the
    frames, which padding would take.
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def decode(self, windows: Sequence[Window]) -> list[Pcm]:
        """The samples of each window, in order.

        Memory is bounded by the caller's choice of ``windows``. If a call fails, no stream
        remembers any of them.

        Raises:
            NotFiniteError: a sample is not finite.
            RuntimeError: a window of a stream was left out, or decoded before.
        """
        parts: list[Pcm] = [np.empty(0, np.int16)] * len(windows)
        memories = {window.memory: Memory() for window in windows}
        for memory, known in memories.items():
            known.state, known.frame = memory.state, memory.frame
        for turn in _turns(windows):
            pcms = self._decode_alike([windows[index] for index in turn], memories)
            for index, pcm in zip(turn, pcms, strict=True):
                parts[index] = pcm
        for memory, after in memories.items():
            memory.state, memory.frame = after.state, after.frame
        return parts

    def decode_all(self, codes: NDArray[np.integer]) -> Pcm:
        """All samples of ``codes`` [T, num_codebooks] (T may be 0): int16 [num_samples(T)].

        Decodes ten seconds or so at a time, whatever T.

        Raises:
            ValueError: wrong shape or type, or a code out of range.
        """
        stream = StreamWindows(self.codec, _LONG_WINDOW)
        windows = stream.push(codes) + stream.finish()
        parts = [self.decode([window])[0] for window in windows]
        return np.concatenate([np.empty(0, np.int16), *parts])

    def _decode_alike(
        self, windows: Sequence[Window], memories: dict[Memory, Memory]
    ) -> NDArray[np.int16]:
        """One call of the codec.

        Args:
            memories: what streams remember by now; those of the windows are brought up to date.
        """
        first = windows[0]
        known = [memories[window.memory] for window in windows]
        states = []
        for window, memory in zip(windows, known, strict=True):
            # Behind its end a stream has a frame but no state.
            if memory.frame != window.begin or (memory.state is None) != window.at_start:
                raise RuntimeError(
                    f"the stream is remembered up to frame {memory.frame}, not {window.begin}"
                )
            if memory.state is not None:
                states.append(memory.state)
        audio, after = self.codec.advance(
            torch.from_numpy(np.stack([window.codes for window in windows])),
            stacked(states) if states else None,
            first.at_end,
        )
        pcm: NDArray[np.int16] = to_int16(audio).cpu().numpy()
        for window, memory, state in zip(
            windows, known, unstacked(after, len(windows)), strict=True
        ):
            memory.state = None if window.at_end else state
            memory.frame = window.end
        return pcm


def _turns(windows: Sequence[Window]) -> list[list[int]]:
    """Indices of the windows of each call: alike, of different streams, those of one in order."""
    earlier: Counter[Memory] = Counter()
    turns: dict[tuple[int, int, bool, bool], list[int]] = {}
    for index, window in enumerate(windows):
        key = (earlier[window.memory], len(window.codes), window.at_start, window.at_end)
        earlier[window.memory] += 1
        turns.setdefault(key, []).append(index)
    return [turns[key] for key in sorted(turns)]
