"""Generated rows as the front end reads them: text ids, and frames as they complete."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine_adapter.delay import StreamingDeinterleaver
from engine_adapter.spec import Output, StreamSpec

Rows = NDArray[np.int32]


class RowReader:
    """Splits the rows of one request into text ids and aligned codes, as they arrive."""

    def __init__(self, spec: StreamSpec, output: Output) -> None:
        self._text = spec.text if "text" in output else None
        self._bridge_rows = len(spec.text_to_audio) if output == "text+audio" else 1
        self._audio_ends = spec.audio_end_ids
        # With delays and a forced tail the row of the end id still carries codes; its own
        # frame is never completed. Otherwise that row is no frame at all.
        self._end_is_no_frame = spec.boundary == "sampled" or spec.max_delay == 0
        self._first_ids = np.array([s.first_id for s in spec.streams], dtype=np.int32)
        self._deinterleaver = StreamingDeinterleaver(spec.delays)

    def push(self, rows: Rows) -> tuple[list[int], Rows]:
        """Takes rows ``[n, streams]`` in order.

        Returns:
            The text ids among them, and the frames they complete as 0-based codes
            ``[m, streams]``. A sampled pad has no code and becomes code 0.
        """
        text_ids: list[int] = []
        if self._text is not None:
            inside = (rows[:, 0] >= self._text.first_id) & (rows[:, 0] < self._text.end)
            count = len(rows) if inside.all() else int(np.argmin(inside))
            text_ids = rows[:count, 0].tolist()
            if count == len(rows):
                return text_ids, self._deinterleaver.push(rows[:0])
            self._text, rows = None, rows[count:]
        skipped = min(self._bridge_rows, len(rows))
        self._bridge_rows -= skipped
        audio = rows[skipped:]
        if self._end_is_no_frame:
            audio = audio[~np.isin(audio[:, 0], self._audio_ends)]
        ids = self._deinterleaver.push(audio)
        return text_ids, np.maximum(ids - self._first_ids, 0)
