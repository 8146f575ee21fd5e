"""A backbone of four bits a weight under heads and stream embeddings that are not quantised."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine_adapter.tiny import make_tiny
from tests.engine.harness import HALF, MAX_MODEL_LEN, Harness, check, requests_of
from tests.reference.generate import Reference
from tests.reference.quantized import Method, quantize
from tests.reference.requests import stable_requests

pytestmark = pytest.mark.engine

# Logits of the engine, whose activations are bfloat16, are that near to those in float32.
THRESHOLD = 0.06


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_ids_are_those_of_the_numbers_that_the_weights_stand_for(
    method: Method, tmp_path: Path
) -> None:
    """Of single frames, one decision of every head, where no rounding of activations can tip it."""
    model = make_tiny("demo", tmp_path / "model")
    quantize(model, tmp_path / "quantized", tmp_path / "plain", method)
    reference = Reference(tmp_path / "plain", MAX_MODEL_LEN)
    cases = stable_requests(
        reference,
        6,
        seed=1,
        guided=False,
        greedy=True,
        max_frames=(1, 1),
        text_lengths=(1, 40),
        threshold=THRESHOLD,
    ).kept
    setup = dataclasses.replace(HALF, quantization=method)
    harness = Harness(str(tmp_path / "quantized"), setup)
    try:
        check(cases, harness.run(harness.together(requests_of(cases))))
    finally:
        harness.close()

    # Else nothing was tested: the weights before they were quantised write something else.
    before = Reference(model, MAX_MODEL_LEN)
    other = [before.generate(case.request).raw_ids != case.result.raw_ids for case in cases]
    assert sum(other) >= len(cases) // 2
