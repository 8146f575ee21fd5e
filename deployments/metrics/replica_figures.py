"""What a replica says of itself every few seconds: its queue, its engine, its vocoder.

Ray forgets a gauge that is not set again, and an engine and a vocoder that count in processes of
their own must be asked. Both are done here, and whether they answer is a metric itself.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cfg_pairing.admission import PRIORITIES
from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.clips import ClipMeter
from deployments.metrics.engine_figures import EngineFigures
from deployments.metrics.vocoder_figures import VocoderFigures
from deployments.replica.gate import Gate

if TYPE_CHECKING:
    from engine_adapter.engine import SpeechEngine

PERIOD_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
_log = logging.getLogger(__name__)


class ReplicaFigures:
    """The gauges of a replica, and the counters of the processes that it has started."""

    def __init__(
        self, gate: Gate, clips: ClipMeter, engine: SpeechEngine, vocoder: Any, capacity: int
    ) -> None:
        """
        Args:
            vocoder: handle of a ``VocoderActor``.
            capacity: requests that the replica takes at a time.
        """
        self._gate = gate
        self._clips = clips
        self._engine = engine
        self._vocoder = vocoder
        self._capacity = capacity
        self._of_engine = EngineFigures(engine.config.max_rows, engine.kv_blocks)
        self._of_vocoder = VocoderFigures()
        self._answered = True
        self._build = build()

    async def keep(self) -> None:
        """Emits them until it is cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(PERIOD_SECONDS)

    async def once(self) -> None:
        """Emits them as they are now."""
        queue = self._gate.queue
        emit.put(d.BUILD_INFO, 1, **self._build)
        emit.put(d.REPLICA_REQUESTS, queue.running)
        emit.put(d.REPLICA_CAPACITY, self._capacity)
        emit.put(d.AUDIO_OWED, self._gate.audio_owed)
        emit.put(d.ENCODER_WAITING, self._clips.waiting)
        for priority in PRIORITIES:
            emit.put(d.ADMISSION_WAITING, queue.waiting(priority), priority=priority)
        healthy = await self._ask()
        emit.put(d.REPLICA_HEALTHY, healthy)

    async def _ask(self) -> bool:
        """Whether engine and vocoder answer; emits what they say."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                engine, vocoder, held = await asyncio.gather(
                    self._engine.stats(),
                    self._vocoder.stats.remote(),
                    self._vocoder.gpu_memory.remote(),
                )
        except Exception as error:  # whatever keeps them from it
            if self._answered:
                _log.warning("engine or vocoder does not answer: %r", error)
            self._answered = False
            return False
        self._answered = True
        self._of_engine.emit(engine)
        self._of_vocoder.emit(vocoder)
        if held is not None:
            emit.put(d.GPU_MEMORY, held, part="vocoder")
        return True


def build() -> dict[str, str]:
    """What runs here: the labels of ``BUILD_INFO``."""
    from engine_adapter.selfcheck import installed_version

    return {
        "version": version("speechlm-serve"),
        "vllm": installed_version(),
        "ray": version("ray"),
        "torch": version("torch"),
    }
