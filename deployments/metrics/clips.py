"""Measures the clips that a replica has encoded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from deployments import tracing
from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.memory import shortage_counted


class ClipMeter:
    """
    Attributes:
        waiting: clips that wait for the encoder or are in it.
    """

    def __init__(self) -> None:
        self.waiting = 0

    @contextmanager
    def clip(self, seconds: float, trace: str | None = None) -> Iterator[None]:
        """The block has a clip of so many seconds encoded.

        Args:
            trace: see ``tracing``.
        """
        began = time.monotonic()
        self.waiting += 1
        try:
            with shortage_counted("encoder"):
                yield
        finally:
            self.waiting -= 1
        emit.observe(d.ENCODE_SECONDS, time.monotonic() - began)
        emit.add(d.ENCODED_AUDIO, seconds)
        tracing.record("encode", trace, began, seconds=seconds)
