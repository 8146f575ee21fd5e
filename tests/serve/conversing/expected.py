"""What a service should make of a request, by the official files alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor

from deployments.audio.joining import Joiner
from engine_adapter.spec import Output
from tests.official import reading
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.listening import Listening
from tests.reference.generate import Reference, ReferenceRequest, ReferenceResult
from tests.reference.model import PromptRow
from tests.reference.requests import required_margin
from tests.serve.conversing.clips import RATE

MOST = 30
"""Text tokens and frames of an answer that is compared."""
_LEAST_TEXT, _LEAST_FRAMES = 3, 8
# Logits by which decisions are clear; with features in float32, see tests/engine/test_official.py.
_FIRM, _FIRM_OF_FEATURES = 5e-5, 2e-4


@dataclass(frozen=True)
class Official:
    """A model as it is published.

    Attributes:
        listening: of a family that hears codes: its DAC and XEUS.
    """

    checkpoint: OfficialCheckpoint
    reference: Reference
    listening: Listening | None = None

    def heard(self, samples: NDArray[np.float64]) -> Any:
        """What a prompt has of a clip: codes or embeddings."""
        # As a WAV file of 16 bits has it.
        clip = ((samples * 32767).astype("<i2") / np.float32(32768)).astype(np.float32)
        if self.listening is None:
            return reading.heard(self.checkpoint, clip)
        return self.listening.codes(clip)

    def sent(self, codes: list[list[int]]) -> NDArray[np.int64]:
        """The sound of frames as 16 bits, faded in and out."""
        sound = (
            reading.sound(self.checkpoint, codes)
            if self.listening is None
            else self.listening.audio(codes)
        )
        joiner = Joiner(RATE)
        pcm = np.rint(sound.clip(-1, 1) * 32767).astype("<i2").tobytes()
        return np.frombuffer(joiner.piece(pcm) + joiner.finish(), "<i2").astype(np.int64)

    def firm(
        self,
        rows: Sequence[PromptRow],
        output: Output,
        *,
        seeds: Iterable[int] = range(40),
        cfg_scale: float | None = None,
    ) -> tuple[int, ReferenceResult]:
        """A seed and its answer, which is long enough, and none of whose decisions is close."""
        for seed in seeds:
            result = self.answer(
                ReferenceRequest(
                    rows,
                    output=output,
                    seed=seed,
                    cfg_scale=cfg_scale,
                    max_text_tokens=MOST,
                    max_frames=MOST,
                )
            )
            if result is not None:
                return seed, result
        pytest.fail("every answer is short, or has a close decision")

    def answer(self, request: ReferenceRequest) -> ReferenceResult | None:
        """What it answers, or None if that is no good example."""
        result = self.reference.generate(request)
        features = any(isinstance(row, Tensor) for row in request.prompt)
        threshold = _FIRM_OF_FEATURES if features else _FIRM
        if result.margin < required_margin(result.cfg_scale, threshold):
            return None
        if "audio" in request.output and len(result.codes) < _LEAST_FRAMES:
            return None
        if "text" in request.output:
            text = self.checkpoint.text(result.text_ids)
            # Text of which each sign is one id, so that one says what the other is.
            clear = text.isascii() and text.isprintable() and len(text) == len(result.text_ids)
            if not clear or text != text.strip():
                return None
            if not _LEAST_TEXT <= len(text) <= MOST - _LEAST_FRAMES:
                return None
        return result


def check_sound(made: NDArray[np.int16], expected: NDArray[np.int64]) -> None:
    """The same samples, and not silence."""
    assert made.shape == expected.shape
    assert np.abs(made.astype(int) - expected).max() <= 2  # rounded in sums of another order
    assert np.abs(expected).max() > 300
