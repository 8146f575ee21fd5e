"""A request that cannot be served ends with an error naming its field; the engine lives on."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from vllm.v1.engine import FinishReason

from cfg_pairing.ledger import PairLedger
from cfg_pairing.policy import Unit
from cfg_pairing.scheduler import PairScheduler
from engine_adapter.request import RequestError, SpeechRequest
from tests.engine.harness import MAX_MODEL_LEN, ROOMY, Harness, Setup, check, requests_of
from tests.reference.requests import Case

pytestmark = pytest.mark.engine

BAD: list[tuple[str, dict[str, Any]]] = [
    ("prompt_ids", {"prompt_ids": []}),
    ("prompt_ids", {"prompt_ids": [-1]}),
    ("prompt_ids", {"prompt_ids": [10**9]}),
    ("prompt_ids", {"prompt_ids": [[1, 2, 3]]}),
    ("prompt_ids", {"prompt_ids": [1] * MAX_MODEL_LEN}),
    ("prompt_ids", {"text": "a", "prompt_ids": [1]}),
    ("text", {"text": None}),
    ("text", {"text": ""}),
    ("voice", {"text": "a", "voice": "nobody"}),
    ("voice", {"prompt_ids": [1], "voice": "rms"}),
    ("text", {"text": "too long " * MAX_MODEL_LEN}),
    ("cfg_scale", {"text": "a", "cfg_scale": 0.5}),
    ("cfg_scale", {"text": "a", "cfg_scale": math.nan}),
    ("temperature", {"text": "a", "temperature": -1.0}),
    ("temperature", {"text": "a", "temperature": math.inf}),
    ("top_p", {"text": "a", "top_p": 0.0}),
    ("top_k", {"text": "a", "top_k": -2}),
    ("seed", {"text": "a", "seed": 1.5}),
    ("max_frames", {"text": "a", "max_frames": 0}),
    ("output", {"text": "a", "output": "video"}),
    ("unconditional_ids", {"text": "a", "cfg_scale": 2.0, "unconditional_ids": []}),
]


def test_bad_values(harness_for: Callable[[Setup], Harness], cases: list[Case]) -> None:
    harness = harness_for(ROOMY)
    for param, fields in BAD:
        with pytest.raises(RequestError) as caught:
            harness.engine.prepare(SpeechRequest(**fields))
        assert caught.value.param == param, fields
        assert str(caught.value).startswith(f"{param}: ")
    harness.run(harness.engine.check_health())
    check(cases[:1], harness.run(harness.together(requests_of(cases[:1]))))


def test_guidance_without_an_unconditional_prompt(
    harness_for: Callable[[Setup], Harness],
) -> None:
    engine = harness_for(ROOMY).engine
    if engine.spec.unconditional != "none":
        assert engine.prepare(SpeechRequest(text="a", cfg_scale=2.0)).guided
        return
    with pytest.raises(RequestError, match="unconditional_ids") as caught:
        engine.prepare(SpeechRequest(text="a", cfg_scale=2.0))
    assert caught.value.param == "cfg_scale"


def test_the_room_of_the_model_ends_a_request_with_a_whole_tail(
    harness_for: Callable[[Setup], Harness],
) -> None:
    """With little room left the answer is short, complete, and says that it was cut."""
    harness = harness_for(ROOMY)
    spec = harness.engine.spec
    least = 1 + spec.audio_rows(1)
    for frames in (1, 4):
        prompt = [1] * (MAX_MODEL_LEN - least - frames + 1)
        request = SpeechRequest(prompt_ids=prompt, seed=1, top_k=1)
        (result,) = harness.run(harness.together([request]))
        if result.finish_reason == "length":
            assert len(result.codes) == frames
            assert len(prompt) + len(result.raw_ids) == MAX_MODEL_LEN
        else:
            assert len(result.codes) <= frames


def test_a_request_whose_last_row_was_unguided_has_failed() -> None:
    """The scheduler's own books; no engine gets there."""
    leader = SimpleNamespace(request_id="a", num_preemptions=0)
    unit: Any = Unit(leader, 0, guided=True, was_admitted=True)
    scheduler = PairScheduler.__new__(PairScheduler)
    scheduler.ledger = PairLedger(admitted=1)
    scheduler._units, scheduler._unit_of = {"a": unit}, {"a": unit}
    scheduler._outcomes = {"finished": 0, "failed": 0}
    output: Any = SimpleNamespace(finish_reason=FinishReason.STOP)
    scheduler._fail_unguided(unit, output)
    assert output.finish_reason == FinishReason.ERROR
    assert scheduler._outcomes == {"finished": 0, "failed": 1}
    assert scheduler.ledger == PairLedger(admitted=1, failed=1, unguided_frames=1)
