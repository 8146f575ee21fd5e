"""vLLM's own metrics (``ray_vllm_...``), beside ours."""

from __future__ import annotations

from typing import Any

from vllm.v1.metrics.ray_wrappers import RayPrometheusStatLogger


class VllmFigures(RayPrometheusStatLogger):
    """All of them but the time between tokens.

    vLLM observes that for every row of every step in the replica's event loop, 3 µs each; with
    hundreds of rows it would hold up the audio. Ours is observed once per answer.
    """

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **options: Any
    ) -> None:
        """See vLLM's ``StatLoggerBase``; called after every step."""
        if iteration_stats is not None:
            iteration_stats.inter_token_latencies_iter = []
        super().record(scheduler_stats, iteration_stats, *args, **options)
