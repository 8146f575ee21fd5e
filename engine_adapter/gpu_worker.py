"""vLLM's GPU worker with the speech runner. Imported only where vLLM's CUDA build runs."""

from __future__ import annotations

from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.gpu_worker import Worker

from engine_adapter.runner import SpeechRunnerMixin
from engine_adapter.worker import SpeechWorkerMixin


class SpeechGPUModelRunner(SpeechRunnerMixin, GPUModelRunner):
    """The GPU runner."""


class SpeechGPUWorker(SpeechWorkerMixin, Worker):
    """The GPU worker."""

    def _make_model_runner(self) -> GPUModelRunner:
        return SpeechGPUModelRunner(self.vllm_config, self.device)
