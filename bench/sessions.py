"""Runs the sessions of a plan: starts a setup, measures its workloads, ends it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench import client_guidance
from bench.checkpoints import Checkpoints
from bench.client_guidance import ClientGuidedClient
from bench.clients import Client, SpeechClient, StockClient, collect, prompt_ids
from bench.clocks import Clocks
from bench.devices import synchronize
from bench.engines import (
    EngineSettings,
    resolved_settings,
    speech_engine,
    stock_engine,
)
from bench.figures import Measurement
from bench.machine import cores
from bench.plan import (
    GUIDANCE_SCALE,
    SKIPPED_STEPS,
    Session,
    Setup,
    Thoroughness,
    Variant,
    Workload,
)
from bench.window import MeasurementError, Trajectory, Window, decode_window

_WARM_UP_FRAMES = 4


@dataclass
class Runner:
    """Measures sessions.

    Attributes:
        threads: of the engines' forward pass.
        device: of plain PyTorch; vLLM finds its own.
        settings: per setup and dtype, what vLLM made of the settings.
    """

    thoroughness: Thoroughness
    checkpoints: Checkpoints
    threads: int
    device: str = "cpu"
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def measure(self, session: Session) -> AsyncGenerator[Measurement, None]:
        """Yields the measurements of a session; its engine has ended when they are done.

        Raises:
            MeasurementError: the figures would not show what they should.
        """
        if session.setup is Setup.SEQUENTIAL:
            for measurement in self._sequential(session):
                yield measurement
            return
        frames, first, last, least = self._window(session.setup)
        with self._clients(session) as client_of:
            widest = max(session.workloads, key=lambda workload: workload.rows)
            await self._collect(client_of, widest, _WARM_UP_FRAMES)
            for turn in range(session.rounds):
                for workload in session.workloads:
                    arrived = await self._collect(client_of, workload, frames)
                    window = decode_window(arrived, first, last, least)
                    yield _measurement(session, workload, turn, window)

    async def _collect(
        self, client_of: Callable[[Variant], Client], workload: Workload, frames: int
    ) -> list[Trajectory]:
        count = workload.variant.requests(workload.rows)
        numbers = list(itertools.islice(self._numbers, count))
        return await collect(client_of(workload.variant), numbers, frames)

    def _window(self, setup: Setup) -> tuple[int, int, int, int]:
        """Frames of a request, first and last row of the window, steps it needs."""
        if setup is Setup.CLIENT_GUIDANCE:
            skipped, counted = client_guidance.SKIPPED_FRAMES, client_guidance.FRAMES
            return skipped + counted, skipped, skipped + counted, counted // 2
        frames = SKIPPED_STEPS + self.thoroughness.steps
        # Row 1 opens audio, so row 1 + frames is the last before the tail.
        return frames, SKIPPED_STEPS, 1 + frames, self.thoroughness.steps // 4

    @contextmanager
    def _clients(self, session: Session) -> Iterator[Callable[[Variant], Client]]:
        """The clients of a started setup."""
        spec, setup = self.checkpoints.spec, session.setup
        settings = EngineSettings(session.dtype, max(self.thoroughness.rows), self.threads)
        if setup is Setup.SPEECH:
            with speech_engine(self.checkpoints.speech, settings) as speech:
                self._note(session, speech._engine.vllm_config)
                yield lambda variant: SpeechClient(speech, guided=variant is Variant.GUIDED)
            return
        options: dict[str, Any] = {"default_executor": setup is Setup.STOCK_DEFAULT}
        if setup is Setup.CLIENT_GUIDANCE:
            options["block_size"] = client_guidance.BLOCK_SIZE
            options["max_logprobs"] = spec.sampling["audio"].top_k
        with stock_engine(self.checkpoints.stock, settings, **options) as stock:
            self._note(session, stock.vllm_config)
            if setup is Setup.CLIENT_GUIDANCE:
                yield lambda _: ClientGuidedClient(stock, spec)
            else:
                yield lambda _: StockClient(stock, spec)

    def _note(self, session: Session, vllm_config: Any) -> None:
        """Keeps an engine's settings and insists that both sides of a comparison agree."""
        noted = self.settings.setdefault(f"{session.setup}, {session.dtype}", {})
        noted.update(resolved_settings(vllm_config))
        compared = [
            self.settings.get(f"{setup}, {session.dtype}") for setup in (Setup.STOCK, Setup.SPEECH)
        ]
        if None not in compared and compared[0] != compared[1]:
            raise MeasurementError(f"the engines' settings differ: {compared[0]}, {compared[1]}")

    def _sequential(self, session: Session) -> Iterator[Measurement]:
        """Plain PyTorch, with the engine's threads and with every core; the faster counts."""
        import torch

        from bench.sequential import SequentialModel

        model = SequentialModel(self.checkpoints.speech, session.dtype, self.device)
        spec, frames = self.checkpoints.spec, SKIPPED_STEPS + self.thoroughness.steps
        clocks, threads_before = Clocks(), torch.get_num_threads()
        try:
            for turn, workload in itertools.product(range(session.rounds), session.workloads):
                windows = []
                for threads in sorted({self.threads, cores()}):
                    torch.set_num_threads(threads)
                    requests = workload.variant.requests(workload.rows)
                    contexts = [prompt_ids(spec, next(self._numbers)) for _ in range(requests)]
                    scale = None
                    if workload.variant is Variant.SEQUENTIAL_GUIDED:
                        contexts.append([0] * len(contexts[0]))
                        scale = GUIDANCE_SCALE
                    arrived = Trajectory()
                    for _ in itertools.islice(model.generate(contexts, scale), frames):
                        synchronize(self.device)
                        arrived.add(clocks.read(), 1)
                    windows.append(decode_window([arrived], SKIPPED_STEPS, frames, 1))
                fastest = min(windows, key=lambda window: window.step_ms)
                yield _measurement(session, workload, turn, fastest)
        finally:
            torch.set_num_threads(threads_before)


def _measurement(session: Session, workload: Workload, turn: int, window: Window) -> Measurement:
    requests = workload.variant.requests(workload.rows)
    return Measurement(
        variant=workload.variant,
        dtype=session.dtype,
        rows=workload.rows,
        cycle=session.cycle,
        round=turn,
        step_ms=window.step_ms,
        engine_cpu_ms=window.engine_cpu_ms,
        client_cpu_ms=window.client_cpu_ms,
        frames_per_s=1000 * requests / window.step_ms,
        steps=window.steps,
        rows_per_message=window.rows_per_message,
    )


def progress(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)
