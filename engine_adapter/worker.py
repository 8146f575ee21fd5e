"""What both workers add to vLLM's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine_adapter.runner import SpeechRunnerMixin


class SpeechWorkerMixin:
    """Answers the front end's questions about the engine core."""

    if TYPE_CHECKING:
        model_runner: SpeechRunnerMixin

    def speech_stats(self) -> dict[str, Any]:
        """The scheduler's figures as of the last step, and the requests the runner keeps."""
        runner = self.model_runner
        return {**runner.speech_stats, "runner_requests": len(runner.speech)}
