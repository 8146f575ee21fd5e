"""vLLM's CPU worker with the speech runner. Imported only where vLLM's CPU build runs."""

from __future__ import annotations

from vllm.v1.worker import cpu_worker
from vllm.v1.worker.cpu_model_runner import CPUModelRunner

from engine_adapter import cpu_norms
from engine_adapter.runner import SpeechRunnerMixin
from engine_adapter.worker import SpeechWorkerMixin


class SpeechCPUModelRunner(SpeechRunnerMixin, CPUModelRunner):
    """The CPU runner."""


class SpeechCPUWorker(SpeechWorkerMixin, cpu_worker.CPUWorker):
    """The CPU worker."""

    def init_device(self) -> None:
        """Sets up the device; the runner it makes is ours."""
        cpu_norms.use()
        # vLLM's CPU worker names its runner class only here, by a module global.
        stock = cpu_worker.CPUModelRunner
        cpu_worker.CPUModelRunner = SpeechCPUModelRunner
        try:
            super().init_device()
        finally:
            cpu_worker.CPUModelRunner = stock
