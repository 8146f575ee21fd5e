"""The phases of a request, as arrays over slots: text, bridge, audio, tail, done.

The definition is docs/generation.md. A phase follows from the request's own rows,
never from its logits. Pure numpy: one call advances a whole batch.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engine_adapter.spec import Output, StreamSpec

Slots = NDArray[np.int64]
Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Phase(IntEnum):
    """Where a request is. DONE requests are never advanced again."""

    TEXT = 0
    BRIDGE = 1
    AUDIO = 2
    TAIL = 3
    DONE = 4


class Finish(IntEnum):
    """What a row means for its request."""

    RUNNING = 0
    STOP = 1
    LENGTH = 2


UNLIMITED = 2**30

_SLOT = np.dtype(
    [
        ("phase", np.int8),
        ("step", np.int32),  # text ids written, position in the bridge, or audio row t
        ("generated", np.int32),  # rows generated so far
        ("length", np.int32),  # rows of the context, prompt included
        ("end", np.int32),  # audio row T that carries the end id, -1 before it
        ("room", np.int32),  # rows the context may have
        ("max_audio_rows", np.int32),  # audio row at which the end is forced
        ("max_text_tokens", np.int32),
        ("audio_follows", np.bool_),  # after text
        ("truncated", np.bool_),  # a limit, not the model, ended a phase
    ]
)


class PhaseTable:
    """Phase state of every slot; a slot belongs to one request for its whole life."""

    def __init__(self, spec: StreamSpec, slots: int) -> None:
        self._spec = spec
        self._bridge = np.array(spec.text_to_audio or (spec.audio_begin,), dtype=np.int32)
        self._delays = np.array(spec.delays, dtype=np.int32)
        self._pads = np.array([s.pad_id for s in spec.streams], dtype=np.int32)
        self._text_ends = spec.text.end_ids if spec.text else ()
        # Rows a text phase must leave: the bridge, one frame and its tail.
        self._audio_reserve = len(self._bridge) + spec.audio_rows(1)
        self._state = np.zeros(slots, dtype=_SLOT)
        self._state["phase"] = Phase.DONE

    def grow(self, slots: int) -> None:
        """Makes room for ``slots`` slots; the present ones keep their state."""
        added = np.zeros(slots - len(self._state), dtype=_SLOT)
        added["phase"] = Phase.DONE
        self._state = np.concatenate([self._state, added])

    def start(
        self,
        slot: int,
        *,
        output: Output,
        prompt_rows: int,
        room: int,
        max_frames: int | None,
        max_text_tokens: int | None,
    ) -> None:
        """Puts a request at the beginning of its first phase."""
        frames = UNLIMITED if max_frames is None else max_frames
        delay = 0 if self._spec.boundary == "forced" else self._spec.max_delay
        state = self._state[slot]
        state["phase"] = Phase.BRIDGE if output == "audio" else Phase.TEXT
        state["step"] = len(self._bridge) - 1 if output == "audio" else 0
        state["generated"] = 0
        state["length"] = prompt_rows
        state["end"] = -1
        state["room"] = room
        state["max_audio_rows"] = min(frames + delay, UNLIMITED)
        state["max_text_tokens"] = UNLIMITED if max_text_tokens is None else max_text_tokens
        state["audio_follows"] = output == "text+audio"
        state["truncated"] = False

    def phases(self, slots: Slots) -> NDArray[np.int8]:
        """Phase of each slot."""
        return self._state["phase"][slots]

    def generated(self, slots: Slots) -> Rows:
        """Rows each slot has generated: the step counter of its noise."""
        return self._state["generated"][slots]

    def lengths(self, slots: Slots) -> Rows:
        """Rows of each slot's context: the position of its next row."""
        return self._state["length"][slots]

    def end_allowed(self, slots: Slots) -> Mask:
        """Whether an end id may be sampled in the next row (text and audio phases)."""
        state = self._state[slots]
        min_text = self._spec.text.min_tokens if self._spec.text else 0
        least = np.where(state["phase"] == Phase.TEXT, min_text, self._spec.min_frames)
        return state["step"] >= least

    def follow(self, followers: Slots, leaders: Slots) -> None:
        """Unconditional rows take the row their leader was given."""
        for name in ("phase", "step", "end"):
            self._state[name][followers] = self._state[name][leaders]
        self._count(followers)

    def advance(self, slots: Slots, sampled: Rows) -> tuple[Rows, NDArray[np.int8]]:
        """Turns samples into rows and moves every slot one row on.

        Args:
            slots: int64 ``[n]``, distinct, none DONE.
            sampled: int32 ``[n, streams]``; ids drawn for text (stream 0) and audio rows,
                anything where the phase forces the id.

        Returns:
            rows int32 ``[n, streams]`` and a :class:`Finish` per slot.
        """
        rows = np.zeros_like(sampled)
        finish = np.zeros(len(slots), dtype=np.int8)
        phase = self.phases(slots)
        for where, step in (
            (np.flatnonzero(phase == Phase.TEXT), self._text),
            (np.flatnonzero(phase == Phase.BRIDGE), self._bridging),
            (np.flatnonzero((phase == Phase.AUDIO) | (phase == Phase.TAIL)), self._audio),
        ):
            if where.size:
                rows[where], finish[where] = step(slots[where], sampled[where])
        self._count(slots)
        self._state["phase"][slots[finish != Finish.RUNNING]] = Phase.DONE
        return rows, finish

    def _count(self, slots: Slots) -> None:
        self._state["generated"][slots] += 1
        self._state["length"][slots] += 1

    def _text(self, slots: Slots, sampled: Rows) -> tuple[Rows, NDArray[np.int8]]:
        state = self._state[slots]
        step, length, room = state["step"], state["length"], state["room"]
        ended = np.isin(sampled[:, 0], self._text_ends)
        follows = state["audio_follows"]
        cut = follows & (
            (step >= state["max_text_tokens"]) | (length + 1 + self._audio_reserve > room)
        )
        leave = follows & (ended | cut)
        last = ~follows & ~ended & ((step + 1 >= state["max_text_tokens"]) | (length + 1 >= room))
        rows = np.zeros_like(sampled)
        rows[:, 0] = np.where(leave, self._bridge[0], sampled[:, 0])
        opens = Phase.AUDIO if len(self._bridge) == 1 else Phase.BRIDGE
        state["phase"] = np.where(leave, opens, Phase.TEXT)
        state["step"] = np.where(leave, 0 if opens is Phase.AUDIO else 1, step + 1)
        state["truncated"] |= cut
        self._state[slots] = state
        stop = np.where(~follows & ended, Finish.STOP, Finish.RUNNING)
        return rows, np.where(last, Finish.LENGTH, stop).astype(np.int8)

    def _bridging(self, slots: Slots, sampled: Rows) -> tuple[Rows, NDArray[np.int8]]:
        state = self._state[slots]
        rows = np.zeros_like(sampled)
        rows[:, 0] = self._bridge[state["step"]]
        done = state["step"] + 1 == len(self._bridge)
        state["phase"] = np.where(done, Phase.AUDIO, Phase.BRIDGE)
        state["step"] = np.where(done, 0, state["step"] + 1)
        self._state[slots] = state
        return rows, np.full(len(slots), Finish.RUNNING, dtype=np.int8)

    def _audio(self, slots: Slots, sampled: Rows) -> tuple[Rows, NDArray[np.int8]]:
        spec, state = self._spec, self._state[slots]
        step, in_tail = state["step"], state["phase"] == Phase.TAIL
        cut = ~in_tail & (
            (step >= state["max_audio_rows"]) | (state["length"] + spec.tail_rows >= state["room"])
        )
        ends_now = ~in_tail & (cut | np.isin(sampled[:, 0], spec.audio_end_ids))
        end = np.where(ends_now, step, state["end"])
        rows = sampled.copy()
        rows[cut, 0] = spec.audio_end_ids[0]
        if spec.boundary == "forced":
            rows[in_tail, 0] = spec.drain_id
            age = step[:, None] - self._delays
            pad = (age < 0) | ((end >= 0)[:, None] & (age >= end[:, None]))
            pad[:, 0] = False
            rows = np.where(pad, self._pads, rows).astype(np.int32)
            over = (end >= 0) & (step >= np.maximum(end, end + spec.max_delay - 1))
        else:
            over = ends_now
        state["phase"] = np.where(end >= 0, Phase.TAIL, Phase.AUDIO)
        state["end"] = end
        state["step"] = step + 1
        state["truncated"] |= cut
        self._state[slots] = state
        reason = np.where(state["truncated"], Finish.LENGTH, Finish.STOP)
        return rows, np.where(over, reason, Finish.RUNNING).astype(np.int8)
