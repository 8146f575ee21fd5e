"""One step of sampling on the worker: phases, guidance, heads and history together.

Everything here is free of vLLM: the runner hands over request ids and hidden states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine_adapter.embedded import EmbeddedHistory, EmbeddedRows
from engine_adapter.heads import CodecHeads
from engine_adapter.phases import Phase, PhaseTable
from engine_adapter.sampling import SamplingTable, sample
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.slots import FrameHistory, SlotMap
from engine_adapter.spec import StreamSpec
from engine_adapter.upload import uploaded
from engine_adapter.wire import WireRequest, unpack_auxiliary

Indices = NDArray[np.int64]


class SpeechHeads(Protocol):
    """What a step needs of the model."""

    codec_heads: CodecHeads

    def text_logits(self, hidden: Tensor) -> Tensor:
        """Full-vocabulary logits, float32 ``[n, vocab]``."""
        ...


@dataclass(frozen=True)
class StepOutput:
    """What a step gave each row of the batch, in batch order.

    Attributes:
        rows: int32 ``[n, streams]``; meaningless where not ``emitted``.
        emitted: bool ``[n]``; False for unfinished prefills and for rows held because
            their guidance partner was not in the step.
        finish: int8 ``[n]``, :class:`engine_adapter.phases.Finish`.
        audio: bool ``[n]``; the row is an audio row.
        audio_next: bool ``[n]``; the row's next rows are audio.
        frames: audio rows sampled for requests (a pair counts once).
    """

    rows: NDArray[np.int32]
    emitted: NDArray[np.bool_]
    finish: NDArray[np.int8]
    audio: NDArray[np.bool_]
    audio_next: NDArray[np.bool_]
    frames: int


class SpeechStep:
    """State of all live requests on a worker, and what a step does to it."""

    def __init__(
        self,
        spec: StreamSpec,
        max_rows: int,
        max_length: int,
        agree: Callable[[NDArray[np.int32]], None] | None = None,
    ) -> None:
        """
        Args:
            agree: makes sampled ids, int32 ``[n, streams]``, the same on all workers that share
                the model's layers; None: there is but one.
        """
        self._spec = spec
        self._agree = agree
        self._slots = SlotMap(max_rows + 16)
        capacity = self._slots.capacity
        self._phases = PhaseTable(spec, capacity)
        self._history = FrameHistory(capacity, max_length, spec.num_streams)
        self._embedded = EmbeddedHistory(capacity)
        self._sampling = {m: SamplingTable(capacity) for m in spec.sampling}
        self._scale = np.ones(capacity, dtype=np.float32)
        self._partner = np.full(capacity, -1, dtype=np.int64)
        self._follower = np.zeros(capacity, dtype=bool)
        self._batch_ids: list[str] = []
        self._batch_slots: Indices = np.empty(0, dtype=np.int64)
        self._writable: Tensor | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, request_id: str, prompt_rows: int, request: WireRequest) -> None:
        """Registers a request, or the unconditional row of one."""
        slot = self._slots.add(request_id)
        if self._slots.capacity > len(self._scale):
            self._grow(self._slots.capacity)
        auxiliary = unpack_auxiliary(request.auxiliary, self._spec.num_streams)
        self._history.put_prompt(slot, prompt_rows, auxiliary)
        self._embedded.put(slot, request.embedded)
        self._scale[slot] = request.cfg_scale
        self._follower[slot] = request.leader is not None
        self._partner[slot] = -1
        if request.leader is not None:
            leader = self._slots[request.leader]
            self._partner[slot], self._partner[leader] = leader, slot
        for modality, table in self._sampling.items():
            table.put(slot, request.sampling_of(modality), request.seed)
        self._phases.start(
            slot,
            output="audio" if request.leader is not None else request.output,
            prompt_rows=prompt_rows,
            room=request.room,
            max_frames=request.max_frames,
            max_text_tokens=request.max_text_tokens,
        )

    def remove(self, request_id: str) -> None:
        """Forgets a finished request; unknown ids are ignored."""
        if request_id not in self._slots:
            return
        slot = self._slots.remove(request_id)
        self._embedded.remove(slot)
        partner = self._partner[slot]
        if partner >= 0:
            self._partner[partner] = -1
        self._batch_ids = []

    def auxiliary_ids(
        self,
        request_ids: Sequence[str],
        starts: NDArray[np.int32],
        offsets: NDArray[np.int32],
    ) -> NDArray[np.int32]:
        """Auxiliary ids of a step's input, int32 ``[tokens, streams - 1]``.

        Args:
            request_ids: the batch, ``n`` ids.
            starts: int32 ``[n]``, absolute position of each request's first token.
            offsets: int32 ``[n + 1]``, where each request's tokens begin in the batch.
        """
        counts = np.diff(offsets)
        first = (starts - offsets[:-1]).repeat(counts)
        positions = np.arange(offsets[-1], dtype=np.int64) + first
        return self._history.gather(self._slots_of(request_ids).repeat(counts), positions)

    def embedded_rows(
        self,
        request_ids: Sequence[str],
        starts: NDArray[np.int32],
        offsets: NDArray[np.int32],
    ) -> EmbeddedRows | None:
        """What of a step's input is embeddings, by its places in the batch; None if nothing is.

        Args:
            request_ids, starts, offsets: as for :meth:`auxiliary_ids`.
        """
        return self._embedded.gather(self._slots_of(request_ids), starts, offsets)

    def sample(
        self,
        request_ids: Sequence[str],
        discard: NDArray[np.bool_],
        hidden: Tensor,
        model: SpeechHeads,
    ) -> StepOutput:
        """Samples every row of a step that can be sampled.

        Args:
            request_ids: the batch, ``n`` ids.
            discard: bool ``[n]``; rows whose prefill is not finished.
            hidden: ``[n, hidden]``, last hidden state of each row.
            model: the heads.
        """
        slots = self._slots_of(request_ids)
        phase = self._phases.phases(slots)
        audio = ~discard & ((phase == Phase.AUDIO) | (phase == Phase.TAIL))
        partner_row = self._partner_rows(slots, audio)
        held = audio & (self._scale[slots] > 1) & (partner_row < 0)
        follower = self._follower[slots]
        follows = audio & ~held & follower
        leads = ~discard & ~held & ~follows

        sampled = np.zeros((len(slots), self._spec.num_streams), dtype=np.int32)
        rows = np.flatnonzero(leads & audio)
        if rows.size:
            sampled[rows] = self._sample_audio(slots, rows, partner_row, hidden, model)
        frames = rows.size
        rows = np.flatnonzero(leads & (phase == Phase.TEXT))
        if rows.size:
            sampled[rows, 0] = self._sample_text(slots[rows], rows, hidden, model)
        if self._agree is not None:
            self._agree(sampled)

        result = np.zeros_like(sampled)
        finish = np.zeros(len(slots), dtype=np.int8)
        leaders = np.flatnonzero(leads)
        result[leaders], finish[leaders] = self._phases.advance(slots[leaders], sampled[leaders])
        followers = np.flatnonzero(follows)
        if followers.size:
            result[followers] = result[partner_row[followers]]
            self._phases.follow(slots[followers], slots[partner_row[followers]])
        emitted = leads | follows
        written = np.flatnonzero(emitted)
        where = slots[written]
        self._history.put(where, self._phases.lengths(where) - 1, result[written, 1:])
        audio_next = emitted & (self._phases.phases(slots) == Phase.AUDIO)
        return StepOutput(result, emitted, finish, audio, audio_next, frames)

    def _sample_audio(
        self,
        slots: Indices,
        rows: Indices,
        partner_row: Indices,
        hidden: Tensor,
        model: SpeechHeads,
    ) -> NDArray[np.int32]:
        """Ids of all streams for the audio rows ``rows``, int32 ``[len(rows), streams]``."""
        heads, count = model.codec_heads, len(rows)
        where = slots[rows]
        guided = np.flatnonzero(self._scale[where] > 1)
        batch = self._sampling["audio"].batch(where, self._phases.generated(where))
        early = ~self._phases.end_allowed(where)
        needed, pairs, scale, barred, *parameters = uploaded(
            [
                np.concatenate([rows, partner_row[rows[guided]]]),
                guided,
                self._scale[where[guided], None, None],
                early[:, None],
                *batch.arrays,
            ],
            hidden.device,
        )
        logits = heads(hidden[needed])
        columns = []
        for index, (group, values) in enumerate(zip(heads.groups, logits, strict=True)):
            mixed = values[:count]
            if guided.size == count:  # in place: of many rows, copies would take the most time
                mixed *= scale
                mixed += values[count:].mul_(1 - scale)
            elif guided.size:
                mixed[pairs] = scale * mixed[pairs] + (1 - scale) * values[count:]
            heads.bar_padding(index, mixed)
            if group.first == 0 and early.any():
                mixed[:, 0, group.end_columns].masked_fill_(barred, float("-inf"))
            columns.append(sample(mixed, heads.ids(index), batch, group.first, parameters))
        drawn: NDArray[np.int32] = torch.cat(columns, dim=1).cpu().numpy().astype(np.int32)
        return drawn

    def _sample_text(
        self, where: Indices, rows: Indices, hidden: Tensor, model: SpeechHeads
    ) -> NDArray[np.int32]:
        """Text ids for the text rows ``rows`` (slots ``where``), int32 ``[len(rows)]``."""
        text = self._spec.text
        assert text is not None
        batch = self._sampling["text"].batch(where, self._phases.generated(where))
        early = ~self._phases.end_allowed(where)
        needed, barred, *parameters = uploaded([rows, early[:, None], *batch.arrays], hidden.device)
        ids = self._text_ids(hidden.device)
        logits = model.text_logits(hidden[needed])
        ends = logits[:, ids[text.size :]].masked_fill(barred, float("-inf"))
        allowed = torch.cat([logits[:, text.first_id : text.end], ends], dim=-1).unsqueeze(1)
        drawn = sample(allowed, ids[None], batch, 0, parameters).squeeze(1)
        there: NDArray[np.int32] = drawn.cpu().numpy().astype(np.int32)
        return there

    def _text_ids(self, device: torch.device) -> Tensor:
        """Ids that may be written, those that end a text last; brought to the device once."""
        if self._writable is None:
            text = self._spec.text
            assert text is not None
            ids = [*range(text.first_id, text.end), *text.end_ids]
            self._writable = torch.tensor(ids, dtype=torch.int64, device=device)
        return self._writable

    def _partner_rows(self, slots: Indices, audio: NDArray[np.bool_]) -> Indices:
        """Batch row of each row's guidance partner, -1 where that is no audio row of this step."""
        row_of = np.full(self._slots.capacity, -1, dtype=np.int64)
        rows = np.flatnonzero(audio)
        row_of[slots[rows]] = rows
        partner = self._partner[slots]
        return np.where(partner >= 0, row_of[partner], -1)

    def _slots_of(self, request_ids: Sequence[str]) -> Indices:
        """Slots of a batch; looked up again only when the batch changed."""
        if not self._batch_ids or self._batch_ids != request_ids:
            self._batch_ids = list(request_ids)
            self._batch_slots = self._slots.of(request_ids)
        return self._batch_slots

    def _grow(self, capacity: int) -> None:
        self._phases.grow(capacity)
        self._history.grow(capacity)
        self._embedded.grow(capacity)
        for table in self._sampling.values():
            table.grow(capacity)
        added = capacity - len(self._scale)
        self._scale = np.concatenate([self._scale, np.ones(added, dtype=np.float32)])
        self._partner = np.concatenate([self._partner, np.full(added, -1, dtype=np.int64)])
        self._follower = np.concatenate([self._follower, np.zeros(added, dtype=bool)])


def rehearse(spec: StreamSpec, hidden: Tensor, model: SpeechHeads) -> None:
    """Draws for all rows as widely as requests may ask: what takes the most memory.

    Args:
        spec: of the family.
        hidden: ``[n, hidden]``; n is the most that a step samples.
        model: the heads.
    """
    rows = np.arange(len(hidden))
    table = SamplingTable(len(hidden))
    for row in range(len(hidden)):
        table.put(row, SamplingDefaults(temperature=1.0, top_p=0.999), seed=0)
    batch = table.batch(rows, rows.astype(np.int32))
    if spec.text is not None:
        logits = model.text_logits(hidden)
        ids = torch.arange(logits.shape[-1], device=logits.device)
        sample(logits[:, None], ids[None], batch)
        del logits
    heads = model.codec_heads
    for index, values in enumerate(heads(hidden)):
        sample(values, heads.ids(index), batch)
