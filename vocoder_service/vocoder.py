"""Decoding windows of many streams together, exactly."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vocoder_service.codec import Codec
from vocoder_service.frames import check_frames
from vocoder_service.recall import decode_recalling, pad
from vocoder_service.windows import Memory, StreamWindows, Window

Pcm = NDArray[np.int16]
"""Mono samples, int16 [samples]."""

_LONG_WINDOW = 500


def to_int16(audio: torch.Tensor) -> torch.Tensor:
    """The one definition of float to 16-bit PCM: clip to [-1, 1], scale by 32767, round.

    Raises:
        ValueError: a sample is not a number or infinite.
    """
    if not torch.isfinite(audio).all():
        raise ValueError("the codec produced samples that are not finite")
    return (audio.clamp(-1.0, 1.0) * 32767.0).round().to(torch.int16)


class Vocoder:
    """Turns windows of codes into PCM.

    Windows of unequal length share a call by padding with frames of code 0, and padding is only
    put where it cannot be heard:

    - to the right of a window that is not the end of its stream: its body is followed by its full
      right context, so nothing beyond it reaches the body;
    - to the left of one that is the end of its stream but not the start: its body is preceded by
      its full left context, and its last frame stays the last of the tensor, where the decoder's
      own edge is that of the one-shot decode;
    - never to one that is a whole stream, which only goes with windows padded to its length.

    Where the decoder remembers, the latents of a window are padded by the same rules, and windows
    of one stream are decoded one after the other.
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def decode(self, windows: Sequence[Window]) -> list[Pcm]:
        """The trimmed samples of each window, in order.

        Makes one call of the codec per distinct length of whole-stream windows, and one more if
        another window is longer than those: no grouping needs fewer. Memory is bounded by the
        caller's choice of ``windows``. If the call fails, no stream remembers any of it.

        Raises:
            ValueError: a code out of range, or a sample that is not finite.
            RuntimeError: the decoder remembers, and a window of a stream was left out.
        """
        parts: list[Pcm] = [np.empty(0, np.int16)] * len(windows)
        memories: dict[Memory, Memory] = {}
        for turn in self._turns(windows):
            lengths = _group_by_length([windows[index] for index in turn])
            for length, members in lengths.items():
                indices = [turn[member] for member in members]
                group = [windows[index] for index in indices]
                pcms = self._decode_padded(group, length, memories)
                for index, pcm in zip(indices, pcms, strict=True):
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
        codec = self.codec
        codes = check_frames(codes, codec.num_codebooks, codec.codebook_size)
        # The last frames go with the end, where a window may be longer.
        right = codec.right_context
        cut = max(0, (len(codes) - right - 1) // _LONG_WINDOW * _LONG_WINDOW + right)
        windows = stream.push(codes[:cut]) + stream.finish(codes[cut:])
        parts = [self.decode([window])[0] for window in windows]
        return np.concatenate([np.empty(0, np.int16), *parts])

    def _turns(self, windows: Sequence[Window]) -> list[list[int]]:
        """Indices of the windows that may be decoded together."""
        if self.codec.stages is None:
            return [list(range(len(windows)))]
        turns: list[list[int]] = []
        seen: Counter[Memory] = Counter()
        for index, window in enumerate(windows):
            turn = seen[window.memory]
            seen[window.memory] += 1
            if turn == len(turns):
                turns.append([])
            turns[turn].append(index)
        return turns

    def _decode_padded(
        self, windows: Sequence[Window], length: int, memories: dict[Memory, Memory]
    ) -> list[Pcm]:
        """One call of the codec, every window padded to ``length`` frames.

        Args:
            memories: what streams remember by now, if not what they did; the windows' are added.
        """
        codec = self.codec
        codes, offsets = pad(
            [torch.from_numpy(window.codes) for window in windows], windows, length
        )
        if codec.stages is None:
            audio = codec.decode(codes)
        else:
            audio, offsets = decode_recalling(codec.stages, windows, codes, offsets, memories)
        pcm = to_int16(audio).cpu().numpy()
        parts = []
        for row, window, offset in zip(pcm, windows, offsets, strict=True):
            begin = offset * codec.hop_length
            end = begin + codec.num_samples(len(window.codes)) - window.trim_right
            parts.append(row[begin + window.trim_left : end])
        return parts


def _group_by_length(windows: Sequence[Window]) -> dict[int, list[int]]:
    """Indices of the windows of each call, by the length in frames they are padded to."""
    whole = {len(window.codes) for window in windows if window.at_start and window.at_end}
    longest = max((len(window.codes) for window in windows), default=0)
    lengths = sorted(whole | {longest})
    groups: dict[int, list[int]] = {}
    for index, window in enumerate(windows):
        length = next(length for length in lengths if length >= len(window.codes))
        groups.setdefault(length, []).append(index)
    return groups
