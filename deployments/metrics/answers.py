"""Measures one request that a replica has accepted: its rows, its audio, and where they are late.

One call for each thing that happens. What follows from it is in ``timeline``.
"""

from __future__ import annotations

import time
from typing import Literal

from deployments import tracing
from deployments.audio.pcm import seconds_of
from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.timeline import AudioTimes, RowTimes

Task = Literal["speech", "conversation", "transcription"]


class AnswerMeter:
    """The metrics and spans of one request, from its acceptance on.

    Attributes:
        trace: see ``tracing``.
    """

    def __init__(
        self,
        task: Task,
        *,
        guided: bool,
        sample_rate: int,
        trace: str | None = None,
        began: float | None = None,
    ) -> None:
        """
        Args:
            sample_rate: of the audio, in Hz.
            began: when it was accepted, by ``time.monotonic``; now, if None.
        """
        self.trace = trace
        self._labels = {"task": task, "guided": str(guided).lower()}
        self._sample_rate = sample_rate
        self._began = time.monotonic() if began is None else began
        self._rows = RowTimes()
        self._first_row: float | None = None
        self._audio = AudioTimes()

    def rows(self, number: int) -> None:
        """The engine has written so many rows."""
        now = time.monotonic()
        if number == 0:
            return
        if self._first_row is None:
            self._first_row = now
            emit.observe(d.TIME_TO_FIRST_TOKEN, now - self._began, **self._labels)
            tracing.record("prefill", self.trace, self._began, now)
        self._rows.add(number, now)

    def utterance_ended(self) -> None:
        """The engine has written all rows of an utterance; another may follow."""
        if self._rows.per_row is not None:
            emit.observe(d.TIME_PER_OUTPUT_FRAME, self._rows.per_row, **self._labels)
        self._rows = RowTimes()

    def audio(self, pcm: bytes) -> None:
        """A piece of audio is there, 16-bit mono."""
        seconds = seconds_of(pcm, self._sample_rate)
        emit.add(d.AUDIO_SECONDS, seconds, **self._labels)
        self._audio.add(seconds, time.monotonic())

    def completed(self) -> None:
        """Everything was made; not called for what was broken off."""
        factor = self._audio.real_time_factor(self._began)
        if factor is None:
            return
        emit.observe(d.REAL_TIME_FACTOR, factor, **self._labels)
        emit.observe(d.AUDIO_LENGTH, self._audio.seconds, **self._labels)
        emit.observe(d.UNDERRUN_SECONDS, self._audio.underrun, **self._labels)
        for gap in self._audio.gaps:
            emit.observe(d.AUDIO_GAP_SECONDS, gap, **self._labels)

    def closed(self) -> None:
        """The request has ended, however it did."""
        if self._first_row is not None:
            tracing.record(
                "audio" if self._audio.seconds else "text",
                self.trace,
                self._first_row,
                seconds=round(self._audio.seconds, 6),
                underrun=round(self._audio.underrun, 6),
            )
