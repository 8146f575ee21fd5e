"""Official checkpoints, converted and served: every id equals what the official file gives."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deployments.calls.messages import SpeechCall, Utterance
from deployments.cli import main
from deployments.replica.utterance_requests import utterance_request
from engine_adapter.conversation import Part, prompt
from engine_adapter.layout import Content, Role
from engine_adapter.spec import Output
from tests.engine.harness import (
    MAX_MODEL_LEN,
    ROOMY,
    Harness,
    as_speech_request,
    check,
    requests_of,
)
from tests.official.bagpiper import write_bagpiper_tts
from tests.official.checkpoint import HIDDEN, OfficialCheckpoint
from tests.official.opuslm import write_opuslm
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import heard, official_model
from tests.reference import conversation as by_hand
from tests.reference.generate import Reference, ReferenceRequest, text_prompt
from tests.reference.requests import Case, required_margin, stable_requests
from vocoder_service.audio_tower import AudioTower

pytestmark = pytest.mark.engine

WRITERS: tuple[Callable[[Path], OfficialCheckpoint], ...] = (
    write_bagpiper_tts,
    write_opuslm,
    write_opuslm_dialogue,
)
# These logits are twice as large as those of the other tiny models.
THRESHOLD = 5e-5
# Features in float32 differ by 1e-5 from those that are written out.
THRESHOLD_OF_AUDIO = 2e-4


@dataclass(frozen=True)
class Converted:
    """An official checkpoint, what the command made of it, and an engine that serves that."""

    checkpoint: OfficialCheckpoint
    directory: Path
    harness: Harness


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__)
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Converted]:
    folder = tmp_path_factory.mktemp("official")
    checkpoint: OfficialCheckpoint = request.param(folder)
    out = folder / "served"
    assert main([*checkpoint.arguments, "--out", str(out)]) == 0
    harness = Harness(str(out), ROOMY)
    yield Converted(checkpoint, out, harness)
    harness.close()
    gc.collect()


def test_ids_equal_those_of_the_official_file(converted: Converted) -> None:
    reference = Reference(official_model(converted.checkpoint), max_model_len=MAX_MODEL_LEN)
    cases = stable_requests(reference, 8, seed=3, threshold=THRESHOLD).kept
    results = converted.harness.run(converted.harness.together(requests_of(cases)))
    check(cases, results)
    assert {case.request.output for case in cases} == set(reference.spec.prompts)
    assert any(case.result.finish_reason == "stop" for case in cases)
    converted.harness.counters()


def test_speech_equals_that_of_the_official_file(converted: Converted) -> None:
    """Of a text alone, as the checkpoint is published to be asked for it: Bagpiper plans in text,
    and its audio is guided."""
    reference = Reference(official_model(converted.checkpoint), max_model_len=MAX_MODEL_LEN)
    engine, spec = converted.harness.engine, reference.spec
    assert spec.text is not None
    text = "Who is it?"
    rows = text_prompt(spec, spec.speech_output, [spec.text.first_id + b for b in text.encode()])
    for seed in range(40):
        asked = ReferenceRequest(rows, output=spec.speech_output, seed=seed)
        expected = reference.generate(asked)
        if expected.margin >= required_margin(expected.cfg_scale, THRESHOLD):
            break
    call = SpeechCall("r", (Utterance(text),), voice="default")
    request = utterance_request(engine.spec, engine.tokenizer, call, text, seed)
    check([Case(asked, expected)], converted.harness.run(converted.harness.together([request])))
    if converted.checkpoint.family == "bagpiper":
        assert (expected.cfg_scale, len(expected.text_ids) > 0) == (3, True)


@dataclass(frozen=True)
class Asked:
    """A conversation with audio, and how it is answered."""

    turns: tuple[tuple[Role, Content, Any], ...]
    output: Output
    temperature: float | None
    cfg_scale: float = 1.0


def test_answers_to_audio_equal_those_of_the_official_file(converted: Converted) -> None:
    """From samples on, by features that the reference writes out: Bagpiper's encoder, the layer
    behind it, prompts with several clips, text and guided audio in answer to them."""
    checkpoint, harness = converted.checkpoint, converted.harness
    spec = harness.engine.spec
    if not spec.hears_embeddings:
        return  # codes as prompts: test_conversation
    tower = AudioTower.load(converted.directory / "audio_encoder", HIDDEN)
    reference = Reference(official_model(checkpoint), max_model_len=MAX_MODEL_LEN)
    first, second = _clip(1.37, 220), _clip(0.8, 330)
    same = _clip(1.37, 440)  # as long as the first
    words = list(range(300, 320))
    asked = [
        Asked((("user", "audio", first),), "text", temperature=0.0),
        Asked((("user", "audio", first),), "text", temperature=1.0),
        Asked((("user", "audio", same),), "text", temperature=1.0),
        Asked((("user", "text", words), ("user", "audio", second)), "text", temperature=None),
        Asked((("user", "audio", first), ("user", "audio", second)), "text+audio", None, 2.0),
        Asked((("user", "audio", same), ("user", "text", words)), "text+audio", 0.0, 1.5),
    ]
    cases = [_firm(reference, checkpoint, a) for a in asked]
    requests = []
    for a, case in zip(asked, cases, strict=True):
        parts = [
            Part(role, content, tower.encode(value) if content == "audio" else value)
            for role, content, value in a.turns
        ]
        assert spec.conversation is not None
        built = prompt(spec, spec.conversation, a.output, parts)
        requests.append(
            dataclasses.replace(
                as_speech_request(dataclasses.replace(case.request, prompt=[])),
                prompt_ids=built.rows.tolist(),
                embedded=built.embedded,
            )
        )
    for _ in range(2):  # with nothing cached, and with their own prompts
        check(cases, harness.run(harness.together(requests)))
    assert cases[1].result.raw_ids != cases[2].result.raw_ids
    assert harness.counters()["joined"] > 0


def _clip(seconds: float, hertz: float) -> NDArray[np.float32]:
    times = np.arange(int(seconds * 16000)) / 16000
    tone = 0.3 * np.sin(2 * np.pi * hertz * times + 3 * np.sin(9 * times))
    return tone.astype(np.float32)


def _firm(reference: Reference, checkpoint: OfficialCheckpoint, asked: Asked) -> Case:
    turns = [
        (role, content, heard(checkpoint, value) if content == "audio" else value)
        for role, content, value in asked.turns
    ]
    rows = by_hand.bagpiper(turns, asked.output)
    closest = 0.0
    for attempt in range(40):
        request = ReferenceRequest(
            rows,
            output=asked.output,
            cfg_scale=asked.cfg_scale,
            temperature=asked.temperature,
            seed=attempt,
            # Greedy, a shorter answer is the only other one.
            max_text_tokens=12 - attempt % 10,
            max_frames=15 - attempt % 10,
        )
        result = reference.generate(request)
        if result.margin >= required_margin(result.cfg_scale, THRESHOLD_OF_AUDIO):
            return Case(request, result)
        closest = max(closest, result.margin)
    pytest.fail(f"every answer has a close decision; the firmest by {closest:.1e}")
