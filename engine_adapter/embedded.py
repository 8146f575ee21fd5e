"""Rows of a prompt that are given as embeddings, where no ids say what a model hears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class EmbeddedRows:
    """Some rows of a prompt; their ids are 0 on all streams.

    Attributes:
        positions: of the rows, int32 ``[n]``, ascending.
        embeddings: float32 ``[n, hidden]``, instead of those of ids.
    """

    positions: NDArray[np.int32]
    embeddings: NDArray[np.float32]

    @classmethod
    def join(cls, pieces: list[EmbeddedRows]) -> EmbeddedRows | None:
        """Several pieces of one prompt, in order; None if there are none."""
        if not pieces:
            return None
        return cls(
            np.concatenate([piece.positions for piece in pieces]),
            np.concatenate([piece.embeddings for piece in pieces]),
        )

    @classmethod
    def stretch(cls, first: int, embeddings: NDArray[np.float32]) -> EmbeddedRows:
        """Rows that follow each other from position ``first`` on."""
        return cls(np.arange(first, first + len(embeddings), dtype=np.int32), embeddings)

    def pack(self) -> tuple[bytes, bytes]:
        """As bytes: positions, embeddings."""
        return self.positions.tobytes(), self.embeddings.tobytes()

    @classmethod
    def unpack(cls, positions: bytes, embeddings: bytes) -> EmbeddedRows | None:
        """The inverse of :meth:`pack`, without a copy; None of nothing."""
        if not positions:
            return None
        where = np.frombuffer(positions, dtype=np.int32)
        rows = np.frombuffer(embeddings, dtype=np.float32).reshape(len(where), -1)
        return cls(where, rows)


class EmbeddedHistory:
    """The embedded rows of every slot's prompt.

    Like the frames they outlive preemption: a resumed request reads them again.
    """

    def __init__(self, slots: int) -> None:
        self._rows: dict[int, EmbeddedRows] = {}
        self._ends = np.zeros(slots, dtype=np.int64)  # one past the last such row

    def grow(self, slots: int) -> None:
        """Makes room for ``slots`` slots."""
        added = slots - len(self._ends)
        self._ends = np.concatenate([self._ends, np.zeros(added, dtype=np.int64)])

    def put(self, slot: int, rows: EmbeddedRows | None) -> None:
        """Takes the rows of a slot's prompt, in the place of those of whoever had it before."""
        self.remove(slot)
        if rows is not None:
            self._rows[slot] = rows
            self._ends[slot] = rows.positions[-1] + 1

    def remove(self, slot: int) -> None:
        """Forgets a slot's rows."""
        self._rows.pop(slot, None)
        self._ends[slot] = 0

    def gather(
        self,
        slots: NDArray[np.int64],
        starts: NDArray[np.int32],
        offsets: NDArray[np.int32],
    ) -> EmbeddedRows | None:
        """Those of a step's input; None if there are none, as in every step but a prefill's.

        Args:
            slots: of the batch, ``[n]``.
            starts: absolute position of each request's first token, ``[n]``.
            offsets: where each request's tokens begin in the batch, ``[n + 1]``.

        Returns:
            Their places among the tokens of the batch, and their embeddings.
        """
        found = []
        for index in np.flatnonzero(starts < self._ends[slots]):
            rows = self._rows[int(slots[index])]
            start = int(starts[index])
            window = (start, start + int(offsets[index + 1] - offsets[index]))
            low, high = np.searchsorted(rows.positions, window)
            if low < high:
                places = rows.positions[low:high] - start + offsets[index]
                found.append(EmbeddedRows(places, rows.embeddings[low:high]))
        return EmbeddedRows.join(found)
