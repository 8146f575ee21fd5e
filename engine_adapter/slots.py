"""Requests keyed by id, their state in arrays keyed by a slot that never moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class SlotMap:
    """Gives every live request a slot number, from its first row to its end.

    Unlike a batch row, a slot survives preemption and the reordering of the batch.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._slot_of: dict[str, int] = {}
        self._free = list(range(capacity - 1, -1, -1))

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._slot_of

    def __getitem__(self, request_id: str) -> int:
        return self._slot_of[request_id]

    def add(self, request_id: str) -> int:
        """Takes a slot; doubles ``capacity`` when none is free."""
        if not self._free:
            self._free.extend(range(2 * self.capacity - 1, self.capacity - 1, -1))
            self.capacity *= 2
        slot = self._free.pop()
        self._slot_of[request_id] = slot
        return slot

    def remove(self, request_id: str) -> int:
        """Gives the slot back and returns it."""
        slot = self._slot_of.pop(request_id)
        self._free.append(slot)
        return slot

    def of(self, request_ids: Sequence[str]) -> NDArray[np.int64]:
        """Slots of a batch, int64 ``[n]``."""
        return np.array([self._slot_of[r] for r in request_ids], dtype=np.int64)


class FrameHistory:
    """Ids of the auxiliary streams at every absolute position of every slot.

    It outlives preemption: a resumed request re-prefills with its true rows. Memory is
    touched only where rows were written, so a long ``max_length`` costs nothing, and growing
    adds an array, as copying what there is would touch all of it in the middle of a step.
    """

    def __init__(self, slots: int, max_length: int, num_streams: int) -> None:
        self._ids = [np.zeros((slots, max_length, num_streams - 1), dtype=np.int32)]

    def grow(self, slots: int) -> None:
        """Makes room for ``slots`` slots; the present ones keep their rows."""
        added = slots - sum(map(len, self._ids))
        self._ids.append(np.zeros((added, *self._ids[0].shape[1:]), dtype=np.int32))

    def put_prompt(self, slot: int, length: int, auxiliary: NDArray[np.int32] | None) -> None:
        """Writes positions ``0..length``: int32 ``[length, streams - 1]``, None for zeros."""
        for ids, _, (own,) in self._parts(np.array([slot])):
            ids[own, :length] = 0 if auxiliary is None else auxiliary

    def put(
        self, slots: NDArray[np.int64], positions: NDArray[np.int32], auxiliary: NDArray[np.int32]
    ) -> None:
        """Writes one row per slot: ``auxiliary`` int32 ``[n, streams - 1]``."""
        for ids, where, own in self._parts(slots):
            ids[own, positions[where]] = auxiliary[where]

    def gather(self, slots: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int32]:
        """Rows at ``(slots[i], positions[i])``, int32 ``[n, streams - 1]``."""
        if len(self._ids) == 1:
            return self._ids[0][slots, positions]
        rows = np.empty((len(slots), self._ids[0].shape[2]), dtype=np.int32)
        for ids, where, own in self._parts(slots):
            rows[where] = ids[own, positions[where]]
        return rows

    def _parts(
        self, slots: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64]]]:
        """Each array that holds some of ``slots``: which of them, and their places in it."""
        first = 0
        for ids in self._ids:
            where = (slots >= first) & (slots < first + len(ids))
            if where.any():
                yield ids, where, slots[where] - first
            first += len(ids)
