"""A worker around SpeechStep, and the same requests done by hand."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine_adapter.phases import Finish
from engine_adapter.request import SpeechRequest, resolve
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import StreamSpec
from engine_adapter.step import SpeechStep, StepOutput
from engine_adapter.wire import WireRequest
from tests.unit.engine_adapter.draw_by_hand import CLOSE, Row, draw_by_hand
from tests.unit.engine_adapter.model import HIDDEN, PlainModel, candidate_logits


def companion_of(name: str) -> str:
    return name + "#unconditional"


def hidden_state(name: str, step: int) -> Tensor:
    """What the model says for row ``step`` of a request; ``[hidden]``."""
    seed = zlib.crc32(f"{name} {step}".encode())
    return torch.randn(HIDDEN, generator=torch.Generator().manual_seed(seed))


@dataclass
class Written:
    """What a row of the worker wrote so far."""

    rows: list[list[int]] = field(default_factory=list)
    finish: Finish = Finish.RUNNING


class Worker:
    """Steps rows by name. A companion's hidden states belong to its leader's row numbers."""

    def __init__(
        self,
        spec: StreamSpec,
        max_rows: int = 4,
        max_length: int = 200,
        hidden_state: Callable[[str, int], Tensor] = hidden_state,
    ) -> None:
        self.spec = spec
        self.hidden_state = hidden_state
        self.model = PlainModel(spec)
        self.step = SpeechStep(spec, max_rows, max_length)
        self.written: dict[str, Written] = {}

    def add(self, name: str, room: int = 150, **fields: Any) -> WireRequest:
        fields.setdefault("prompt_ids", [1, 2, 3])
        resolved = resolve(SpeechRequest(**fields), self.spec, None)
        wire = WireRequest.of(resolved, room)
        self.step.add(name, len(resolved.prompt), wire)
        self.written[name] = Written()
        return wire

    def add_companion(self, name: str, wire: WireRequest, prompt_rows: int = 2) -> str:
        companion = companion_of(name)
        row = dataclasses.replace(wire, output="audio", leader=name, auxiliary=b"")
        self.step.add(companion, prompt_rows, row)
        self.written[companion] = Written()
        return companion

    def add_pair(self, name: str, scale: float = 2.0, **fields: Any) -> list[str]:
        """A guided audio request that has written ``audio_begin`` on both rows."""
        fields.setdefault("unconditional_ids", [1, 2])
        wire = self.add(name, cfg_scale=scale, **fields)
        companion = self.add_companion(name, wire)
        self.sample([name, companion])
        return [name, companion]

    def sample(self, names: Sequence[str], unfinished: Collection[str] = ()) -> StepOutput:
        """One step; ``unfinished`` rows are still in their prefill."""
        leaders = [name.removesuffix("#unconditional") for name in names]
        states = [
            self.hidden_state(name, len(self.written[leader].rows))
            for name, leader in zip(names, leaders, strict=True)
        ]
        hidden = torch.stack(states) if states else torch.empty(0, HIDDEN)
        discard = np.array([name in unfinished for name in names], dtype=bool)
        output = self.step.sample(list(names), discard, hidden, self.model)
        for i, name in enumerate(names):
            if output.emitted[i]:
                self.written[name].rows.append(output.rows[i].tolist())
                self.written[name].finish = Finish(output.finish[i])
        return output

    def run(self, names: Sequence[str], steps: int) -> list[list[int]]:
        """Rows of the first name after some steps of all."""
        for _ in range(steps):
            self.sample(names)
        return self.written[names[0]].rows

    def remove(self, name: str) -> None:
        self.step.remove(name)


@dataclass(frozen=True)
class ByHand:
    """Samples of one request, from the plain heads and the definition of a draw."""

    model: PlainModel
    name: str
    seed: int
    sampling: dict[Literal["text", "audio"], SamplingDefaults]
    scale: float = 1.0

    def text(self, step: int, end_allowed: bool) -> int:
        text = self.model.spec.text
        assert text is not None
        ids = [*range(text.first_id, text.end), *text.end_ids]
        logits = self.model.text_logits(hidden_state(self.name, step)[None])[0, ids]
        return self._draw("text", step, 0, ids, logits, () if end_allowed else text.end_ids)

    def audio(self, step: int, stream: int, end_allowed: bool) -> int:
        spec = self.model.spec
        logits = candidate_logits(self.model, hidden_state(self.name, step)[None], stream)[0]
        if self.scale > 1:
            unguided = hidden_state(companion_of(self.name), step)[None]
            other = candidate_logits(self.model, unguided, stream)[0]
            logits = self.scale * logits + (1 - self.scale) * other
        masked = spec.audio_end_ids if stream == 0 and not end_allowed else ()
        return self._draw("audio", step, stream, spec.candidates(stream), logits, masked)

    def _draw(
        self,
        modality: Literal["text", "audio"],
        step: int,
        stream: int,
        ids: Sequence[int],
        logits: Tensor,
        masked: Collection[int],
    ) -> int:
        bar = torch.tensor([i in masked for i in ids])
        of = self.sampling[modality]
        row = Row(of.temperature, of.top_k, of.top_p, self.seed, step)
        drawn = draw_by_hand(logits.masked_fill(bar, -torch.inf), torch.tensor(ids), row, stream)
        assert drawn.margin > CLOSE, "choose another seed: this decision is too close"
        return drawn.id
