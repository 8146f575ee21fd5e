"""The vocoder's own figures as metrics, as ``engine_figures`` has those of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployments.metrics import definitions as d
from deployments.metrics import emit

if TYPE_CHECKING:
    from vocoder_service.service import VocoderStats


class VocoderFigures:
    """Emits what ``VocoderActor.stats`` returns."""

    def __init__(self) -> None:
        self._windows = 0
        self._batches = 0
        self._seconds = 0.0

    def emit(self, stats: VocoderStats) -> None:
        """
        Args:
            stats: of the same vocoder as in the last call.
        """
        emit.put(d.VOCODER_QUEUE, stats.queue_depth)
        emit.put(d.VOCODER_STREAMS, stats.live_streams)
        emit.put(d.VOCODER_BUSY, stats.load)
        emit.add(d.VOCODER_WINDOWS, stats.windows_decoded - self._windows)
        emit.add(d.VOCODER_BATCHES, stats.batches - self._batches)
        emit.add(d.VOCODER_SECONDS, stats.decode_seconds - self._seconds)
        self._windows, self._batches = stats.windows_decoded, stats.batches
        self._seconds = stats.decode_seconds
