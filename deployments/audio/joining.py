"""The utterances of one answer, one behind the other, without a click between or around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FADE_SECONDS = 0.005


class Joiner:
    """Joins PCM (signed 16-bit little-endian mono) of successive utterances piece by piece.

    Each utterance fades in over its first 5 ms and out over its last 5 ms, since a codec knows
    nothing of the silence around it; between two lies silence. Samples are scaled, never dropped
    or added: the result is as long as the utterances and pauses together. The last 5 ms of what
    came are held back; how the input is cut changes nothing.
    """

    def __init__(self, sample_rate: int) -> None:
        """
        Args:
            sample_rate: in Hz.
        """
        self._sample_rate = sample_rate
        fade = round(_FADE_SECONDS * sample_rate)
        self._fade_in = _rising(fade)
        self._from_start = 0  # samples into the fade-in
        self._held: NDArray[np.int16] = np.zeros(0, "<i2")

    def piece(self, pcm: bytes) -> bytes:
        """Takes the next samples of an utterance; those that can no longer change."""
        samples = self._faded_in(np.frombuffer(pcm, "<i2"))
        known = np.concatenate([self._held, samples])
        ready = max(0, len(known) - len(self._fade_in))
        self._held = known[ready:]
        return known[:ready].tobytes()

    def end_utterance(self, pause_seconds: float) -> bytes:
        """Ends an utterance that another one follows; its last samples and the pause."""
        pause = np.zeros(round(pause_seconds * self._sample_rate), "<i2")
        self._from_start = 0
        return self.finish() + pause.tobytes()

    def finish(self) -> bytes:
        """Ends the last utterance; its last samples."""
        held, self._held = self._held, self._held[:0]
        return _scaled(held, _rising(len(held))[::-1]).tobytes()

    def _faded_in(self, samples: NDArray[np.int16]) -> NDArray[np.int16]:
        gains = self._fade_in[self._from_start : self._from_start + len(samples)]
        self._from_start += len(gains)
        return np.concatenate([_scaled(samples[: len(gains)], gains), samples[len(gains) :]])


def _rising(length: int) -> NDArray[np.float64]:
    """Gains ``[length]`` along half a cosine, 0 first, and short of 1."""
    return 0.5 - 0.5 * np.cos(np.pi * np.arange(length) / max(length, 1))


def _scaled(samples: NDArray[np.int16], gains: NDArray[np.float64]) -> NDArray[np.int16]:
    return np.rint(samples * gains).astype("<i2")
