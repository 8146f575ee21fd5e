"""Faster or slower speech with the same pitch, as a stream."""

from __future__ import annotations

import av
import numpy as np
from av.filter import Graph

from deployments.audio.pcm import BYTES_PER_SAMPLE

MIN_SPEED, MAX_SPEED = 0.25, 4.0

# One ``atempo`` goes down to 0.5; its own windows are 40 to 64 ms long. What it gives depends on
# how its input is cut, so it always gets blocks of the same length.
_SLOWEST_STAGE = 0.5
_BLOCK_SECONDS = 0.04
# Silence behind the end, enough to push the last samples through both stages at any speed.
_PUSH_SECONDS = 0.5


class Stretcher:
    """Changes the speed of PCM (signed 16-bit little-endian mono) piece by piece.

    FFmpeg's ``atempo`` (overlapping windows, each placed where it fits the one before) does it.
    ``n`` samples become exactly ``round(n / speed)``, and how the input is cut does not change
    one sample. At speed 1 the samples are not touched.
    """

    def __init__(self, sample_rate: int, speed: float) -> None:
        """
        Args:
            sample_rate: in Hz.
            speed: of the result; 2 is twice as fast.

        Raises:
            ValueError: a speed outside ``MIN_SPEED`` to ``MAX_SPEED``.
        """
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise ValueError(f"must be from {MIN_SPEED:g} to {MAX_SPEED:g}, not {speed:g}")
        self._sample_rate = sample_rate
        self._speed = speed
        self._graph = None if speed == 1.0 else _graph(sample_rate, speed)
        self._block_bytes = round(_BLOCK_SECONDS * sample_rate) * BYTES_PER_SAMPLE
        self._pcm = bytearray()
        self._taken = self._given = 0  # samples

    def piece(self, pcm: bytes) -> bytes:
        """What is ready at the new speed, perhaps nothing."""
        if self._graph is None:
            return pcm
        self._taken += len(pcm) // BYTES_PER_SAMPLE
        return self._through(self._graph, pcm)

    def finish(self) -> bytes:
        """What was held back."""
        if self._graph is None:
            return b""
        rest = round(self._taken / self._speed) - self._given
        silence = bytes(round(_PUSH_SECONDS * self._sample_rate) * BYTES_PER_SAMPLE)
        return self._through(self._graph, silence)[: rest * BYTES_PER_SAMPLE]

    def _through(self, graph: Graph, pcm: bytes) -> bytes:
        self._pcm += pcm
        whole = len(self._pcm) - len(self._pcm) % self._block_bytes
        stretched = bytearray()
        for start in range(0, whole, self._block_bytes):
            block = np.frombuffer(self._pcm[start : start + self._block_bytes], "<i2")
            frame = av.AudioFrame.from_ndarray(block[None], format="s16", layout="mono")
            frame.sample_rate = self._sample_rate
            graph.push(frame)
            stretched += _ready(graph)
        del self._pcm[:whole]
        self._given += len(stretched) // BYTES_PER_SAMPLE
        return bytes(stretched)


def _graph(sample_rate: int, speed: float) -> Graph:
    stages = [speed] if speed >= _SLOWEST_STAGE else [_SLOWEST_STAGE, speed / _SLOWEST_STAGE]
    graph = Graph()
    graph.link_nodes(
        graph.add_abuffer(sample_rate=sample_rate, format="s16", layout="mono"),
        *(graph.add("atempo", repr(stage)) for stage in stages),
        graph.add("abuffersink"),
    ).configure()
    return graph


def _ready(graph: Graph) -> bytes:
    frames = bytearray()
    while True:
        try:
            frames += graph.pull().to_ndarray().tobytes()
        except BlockingIOError:  # wants more input
            return bytes(frames)
