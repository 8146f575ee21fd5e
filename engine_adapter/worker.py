"""What both workers add to vLLM's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from engine_adapter.runner import SpeechRunnerMixin


class SpeechWorkerMixin:
    """Answers the front end's questions about the engine core."""

    if TYPE_CHECKING:
        model_runner: SpeechRunnerMixin

    def speech_stats(self) -> dict[str, Any]:
        """The scheduler's figures as of the last step, the requests the runner keeps, and the
        memory of the GPU, if there is one."""
        runner = self.model_runner
        return {
            **runner.speech_stats,
            "runner_requests": len(runner.speech),
            "gpu_memory": _gpu_memory() if runner.device.type == "cuda" else None,
        }


def _gpu_memory() -> dict[str, int]:
    """Bytes that PyTorch has ``held`` in this process, and ``used`` by all, of ``capacity``."""
    free, capacity = torch.cuda.mem_get_info()
    held = torch.cuda.memory_reserved()
    return {"held": held, "used": capacity - free, "capacity": capacity}
