"""Runs the sessions of a plan: starts a setup, measures its workloads, ends it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench import client_guidance
from bench.checkpoints import Checkpoints
from bench.client_guidance import GuidingClient
from bench.clients import Client, SpeechClient, StockClient, prompt_ids, together
from bench.clocks import Clocks, StepTap
from bench.engines import EngineSettings, resolved_settings, speech_engine, stock_engine
from bench.figures import Measurement
from bench.machine import cores
from bench.plan import GUIDANCE_SCALE, SKIPPED_STEPS, Profile, Session, Setup, Variant, Workload
from bench.window import MeasurementError, Window, decode_window, frame_window

if TYPE_CHECKING:
    from bench.sequential import SequentialModel

_WARM_UP_FRAMES = 4


@dataclass
class Runner:
    """Measures sessions.

    Attributes:
        threads: of the engines' forward pass.
        settings: per setup and dtype, what vLLM made of the settings.
    """

    profile: Profile
    checkpoints: Checkpoints
    threads: int
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def measure(self, session: Session) -> AsyncGenerator[Measurement, None]:
        """Yields the measurements of a session; its engine has ended when they are done.

        Raises:
            MeasurementError: the figures would not show what they should.
        """
        windows = {
            Setup.SEQUENTIAL: self._sequential,
            Setup.STOCK: self._stock,
            Setup.STOCK_DEFAULT: self._stock,
            Setup.SPEECH: self._speech,
            Setup.CLIENT_GUIDANCE: self._client_guidance,
        }[session.setup](session)
        turns = itertools.product(range(session.rounds), session.workloads)
        async for window in windows:
            turn, workload = next(turns)
            yield _measurement(session, workload, turn, window)

    async def _speech(self, session: Session) -> AsyncGenerator[Window, None]:
        with speech_engine(self.checkpoints.speech, self._engine_settings(session)) as engine:
            self._note_settings(session, engine._engine.vllm_config)
            tap = StepTap(engine._engine)
            clients: dict[Variant, Client] = {
                Variant.PLAIN: SpeechClient(engine, guided=False),
                Variant.GUIDED: SpeechClient(engine, guided=True),
            }
            async for window in self._decode(session, tap, clients):
                yield window

    async def _stock(self, session: Session) -> AsyncGenerator[Window, None]:
        default = session.setup is Setup.STOCK_DEFAULT
        settings = self._engine_settings(session)
        with stock_engine(self.checkpoints.stock, settings, default_executor=default) as engine:
            self._note_settings(session, engine.vllm_config)
            client = StockClient(engine, self.checkpoints.spec)
            clients: dict[Variant, Client] = {
                Variant.STOCK: client,
                Variant.STOCK_DEFAULT: client,
            }
            async for window in self._decode(session, StepTap(engine), clients):
                yield window

    async def _decode(
        self, session: Session, tap: StepTap, clients: dict[Variant, Client]
    ) -> AsyncGenerator[Window, None]:
        """Measures the decode steps of all workloads."""
        widest = max(session.workloads, key=lambda workload: workload.rows)
        frames = SKIPPED_STEPS + self.profile.steps
        for workload in (widest, *_in_turn(session)):
            client = clients[workload.variant]
            numbers = self._next_numbers(workload)
            if not tap.log:  # the first of the engine
                await together(client.generate(number, _WARM_UP_FRAMES) for number in numbers)
                continue
            tap.log.clear()
            await together(client.generate(number, frames) for number in numbers)
            yield decode_window(tap.log, len(numbers), SKIPPED_STEPS, self.profile.steps)

    async def _client_guidance(self, session: Session) -> AsyncGenerator[Window, None]:
        spec, settings = self.checkpoints.spec, self._engine_settings(session)
        skip = client_guidance.SKIPPED_FRAMES
        with stock_engine(
            self.checkpoints.stock,
            settings,
            block_size=client_guidance.BLOCK_SIZE,
            max_logprobs=spec.sampling["audio"].top_k,
        ) as engine:
            self._note_settings(session, engine.vllm_config)
            client = GuidingClient(engine, spec)
            for workload in _in_turn(session):
                numbers = self._next_numbers(workload)
                frames = skip + client_guidance.FRAMES
                arrived = await together(client.generate(number, frames) for number in numbers)
                yield frame_window(arrived, skip)

    async def _sequential(self, session: Session) -> AsyncGenerator[Window, None]:
        """Plain PyTorch, with the engine's threads and with every core; the faster counts."""
        import torch

        from bench.sequential import SequentialModel

        model = SequentialModel(self.checkpoints.speech, session.dtype)
        threads_before = torch.get_num_threads()
        try:
            for workload in _in_turn(session):
                windows = []
                for threads in sorted({self.threads, cores()}):
                    torch.set_num_threads(threads)
                    windows.append(self._sequential_window(model, workload.variant))
                yield min(windows, key=lambda window: window.step_ms)
        finally:
            torch.set_num_threads(threads_before)

    def _sequential_window(self, model: SequentialModel, variant: Variant) -> Window:
        contexts = [prompt_ids(model.spec, next(self._numbers))]
        if variant is Variant.SEQUENTIAL_GUIDED:
            contexts.append([0] * len(contexts[0]))
        clocks, frames = Clocks(), SKIPPED_STEPS + self.profile.steps
        rows = itertools.islice(model.generate(contexts, GUIDANCE_SCALE), frames)
        return frame_window([[clocks.frame() for _ in rows]], SKIPPED_STEPS)

    def _next_numbers(self, workload: Workload) -> Sequence[int]:
        count = workload.variant.requests(workload.rows)
        return list(itertools.islice(self._numbers, count))

    def _engine_settings(self, session: Session) -> EngineSettings:
        return EngineSettings(session.dtype, max(self.profile.rows), self.threads)

    def _note_settings(self, session: Session, vllm_config: Any) -> None:
        """Keeps an engine's settings and insists that both sides of a comparison agree."""
        noted = self.settings.setdefault(f"{session.setup}, {session.dtype}", {})
        noted.update(resolved_settings(vllm_config))
        compared = [
            self.settings.get(f"{setup}, {session.dtype}") for setup in (Setup.STOCK, Setup.SPEECH)
        ]
        if None not in compared and compared[0] != compared[1]:
            raise MeasurementError(f"the engines' settings differ: {compared[0]}, {compared[1]}")


def _in_turn(session: Session) -> Iterator[Workload]:
    """All workloads, as often as the session has rounds."""
    for _ in range(session.rounds):
        yield from session.workloads


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
        lag_ms=window.lag_ms,
        frames_per_s=1000 * requests / window.step_ms,
        steps=window.steps,
    )


def progress(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)
