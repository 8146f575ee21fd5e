"""Official checkpoints, converted and served: every id equals what the official file gives."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from deployments.calls.messages import SpeechCall, Utterance
from deployments.cli import main
from deployments.replica.utterance_requests import utterance_request
from engine_adapter.conversation import Part, cloning_parts, prompt
from engine_adapter.layout import Content, Role
from engine_adapter.request import SpeechRequest
from engine_adapter.spec import Output
from tests.engine.harness import ROOMY, Harness, as_speech_request, check, requests_of
from tests.official.bagpiper import write_bagpiper_tts
from tests.official.checkpoint import HIDDEN, OfficialCheckpoint
from tests.official.listening import Listening, write_listening
from tests.official.opuslm import write_opuslm
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import heard, official_model
from tests.reference import conversation as by_hand
from tests.reference.generate import Reference, ReferenceRequest, text_prompt
from tests.reference.model import PromptRow
from tests.reference.requests import Case, required_margin, stable_requests
from vocoder_service.audio_tower import AudioTower
from vocoder_service.clips import AudioEncoder
from vocoder_service.encoder import load_encoder

pytestmark = pytest.mark.engine

WRITERS: tuple[Callable[[Path], OfficialCheckpoint], ...] = (
    write_bagpiper_tts,
    write_opuslm,
    write_opuslm_dialogue,
)
# A recorded voice alone takes 500 rows.
SETUP = dataclasses.replace(ROOMY, max_model_len=1024)
# These logits are twice as large as those of the other tiny models.
THRESHOLD = 5e-5
# Features in float32 differ by 1e-5 from those that are written out.
THRESHOLD_OF_AUDIO = 2e-4

Samples = NDArray[np.float32]
TEXT = "Who is it?"


@dataclass(frozen=True)
class Converted:
    """An official checkpoint, what the command made of it, and an engine that serves that.

    Attributes:
        listening: of a family that hears codes: what makes them, in the official formats.
        encoder: the product's, of what the model hears.
        reference: on the official file.
    """

    checkpoint: OfficialCheckpoint
    listening: Listening | None
    encoder: AudioEncoder
    harness: Harness
    reference: Reference


@pytest.fixture(scope="module", params=WRITERS, ids=lambda writer: writer.__name__)
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Converted]:
    folder = tmp_path_factory.mktemp("official")
    checkpoint: OfficialCheckpoint = request.param(folder)
    arguments, out = checkpoint.arguments, folder / "served"
    listening = None if checkpoint.family == "bagpiper" else write_listening(folder)
    if listening is not None:
        arguments += ["--codec", str(listening.codec), "--ssl", str(listening.ssl)]
    assert main([*arguments, "--out", str(out)]) == 0
    encoder: AudioEncoder = (
        AudioTower.load(out / "audio_encoder", HIDDEN)
        if listening is None
        else load_encoder(out / "codec", out / "ssl")
    )
    reference = Reference(official_model(checkpoint), max_model_len=SETUP.max_model_len)
    harness = Harness(str(out), SETUP)
    yield Converted(checkpoint, listening, encoder, harness, reference)
    harness.close()
    gc.collect()


def test_ids_equal_those_of_the_official_file(converted: Converted) -> None:
    reference = converted.reference
    cases = stable_requests(reference, 8, seed=3, threshold=THRESHOLD).kept
    results = converted.harness.run(converted.harness.together(requests_of(cases)))
    check(cases, results)
    assert {case.request.output for case in cases} == set(reference.spec.prompts)
    assert any(case.result.finish_reason == "stop" for case in cases)
    converted.harness.counters()


def test_speech_equals_that_of_the_official_file(converted: Converted) -> None:
    """Of a text alone, as the checkpoint is published to be asked for it: Bagpiper plans in text,
    and its audio is guided."""
    engine, reference = converted.harness.engine, converted.reference
    spec = reference.spec
    rows = text_prompt(spec, spec.speech_output, converted.checkpoint.ids(TEXT))
    for seed in range(40):
        asked = ReferenceRequest(rows, output=spec.speech_output, seed=seed)
        expected = reference.generate(asked)
        if expected.margin >= required_margin(expected.cfg_scale, THRESHOLD):
            break
    call = SpeechCall("r", (Utterance(TEXT),), voice="default")
    request = utterance_request(engine.spec, engine.tokenizer, call, TEXT, seed)
    check([Case(asked, expected)], converted.harness.run(converted.harness.together([request])))
    if converted.checkpoint.family == "bagpiper":
        assert (expected.cfg_scale, len(expected.text_ids) > 0) == (3, True)


def clip(seconds: float, hertz: float) -> Samples:
    times = np.arange(int(seconds * 16000)) / 16000
    tone = 0.3 * np.sin(2 * np.pi * hertz * times + 3 * np.sin(9 * times))
    return tone.astype(np.float32)


@dataclass(frozen=True)
class Asked:
    """What a model is asked, and how it answers.

    Attributes:
        task: ``text`` is one text, in the prompt that the output has.
        turns: role, content, and a text or samples.
    """

    task: Literal["text", "conversation", "transcription", "cloning"]
    turns: tuple[tuple[Role, Content, str | Samples], ...]
    output: Output
    temperature: float | None = None
    cfg_scale: float = 1.0


FIRST, SECOND = clip(1.37, 220), clip(0.8, 330)
SAME = clip(1.37, 440)  # as long as the first
LONG = clip(10.4, 280)  # more than the 500 frames of a voice


def asked_of(family: str) -> Sequence[Asked]:
    """The tasks of a family. The first two have other audio of equal length."""
    one: tuple[tuple[Role, Content, str], ...] = (("user", "text", TEXT),)
    if family == "bagpiper":
        return [
            Asked("transcription", (("user", "audio", FIRST),), "text", 1.0),
            Asked("transcription", (("user", "audio", SAME),), "text", 1.0),
            Asked("transcription", (("user", "audio", FIRST),), "text", 0.0),
            Asked("conversation", (*one, ("user", "audio", SECOND)), "text"),
            Asked(
                "conversation",
                (("user", "audio", FIRST), ("user", "audio", SECOND)),
                "text+audio",
                cfg_scale=2.0,
            ),
            Asked("conversation", (("user", "audio", SAME), *one), "text+audio", 0.0, 1.5),
            Asked("text", one, "text"),
            Asked("text", one, "audio", cfg_scale=2.0),
            Asked("text", one, "text+audio", cfg_scale=3.0),
        ]
    cloning = [
        Asked("cloning", (*one, ("system", "speaker", FIRST)), "audio"),
        Asked("cloning", (*one, ("system", "speaker", SAME)), "audio"),
        Asked("cloning", (*one, ("system", "speaker", FIRST)), "audio", 0.0),
        Asked("cloning", (*one, ("system", "speaker", LONG)), "audio"),
    ]
    if family == "opuslm":
        return [
            *cloning,
            Asked("transcription", (("user", "audio", FIRST),), "text"),
            Asked("transcription", (("user", "audio", SAME),), "text"),
            Asked("transcription", (("user", "audio", SECOND),), "text", 0.0),
            Asked("text", one, "text"),
            Asked("text", one, "text", 0.0),
            Asked("text", one, "audio"),
        ]
    said: tuple[tuple[Role, Content, str | Samples], ...] = (
        ("system", "speaker", FIRST),
        ("user", "audio", SECOND),
    )
    return [
        *cloning,
        Asked("conversation", said, "text+audio"),
        Asked("conversation", (*said, ("assistant", "text", "I am."), *one), "text"),
        Asked("text", one, "text"),
        Asked("text", one, "audio"),
        Asked("text", one, "text+audio"),
    ]


def test_answers_equal_those_of_the_official_file(converted: Converted) -> None:
    """From texts and samples on: what is heard, by features and codes that are written out, and
    prompts that are laid out by hand."""
    asked = asked_of(converted.checkpoint.family)
    cases = [firm(converted, a) for a in asked]
    requests = [requested(converted, a, case) for a, case in zip(asked, cases, strict=True)]
    harness = converted.harness
    joined = harness.counters()["joined"]
    for _ in range(2):  # with nothing cached, and with their own prompts
        check(cases, harness.run(harness.together(requests)))
    assert cases[0].result.raw_ids != cases[1].result.raw_ids
    guided = any(a.cfg_scale > 1 for a in asked)
    assert (harness.counters()["joined"] > joined) == guided


def firm(converted: Converted, asked: Asked) -> Case:
    """An answer without a close decision."""
    rows = rows_of(converted, asked)
    threshold = THRESHOLD if converted.listening else THRESHOLD_OF_AUDIO
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
        result = converted.reference.generate(request)
        if result.margin >= required_margin(result.cfg_scale, threshold):
            return Case(request, result)
        closest = max(closest, result.margin)
    pytest.fail(f"every answer has a close decision; the firmest by {closest:.1e}")


def rows_of(converted: Converted, asked: Asked) -> Sequence[PromptRow]:
    """The prompt, by hand."""
    checkpoint, listening = converted.checkpoint, converted.listening

    def value(content: Content, given: str | Samples) -> Any:
        if isinstance(given, str):
            return checkpoint.ids(given)
        return heard(checkpoint, given) if listening is None else listening.codes(given)

    turns = [(role, content, value(content, given)) for role, content, given in asked.turns]
    values = [value for _, _, value in turns]
    match checkpoint.family, asked.task, asked.output:
        case "bagpiper", _, output:
            return by_hand.bagpiper(turns, output)
        case "opuslm", "transcription", _:
            return by_hand.opuslm_transcription(*values)
        case "opuslm", "cloning", _:
            return by_hand.opuslm_cloning(*values)
        case "opuslm", "text", "text":
            return by_hand.opuslm_text(*values)
        case "opuslm", "text", "audio":
            return by_hand.opuslm_speech(*values)
        case "opuslm-dialogue", "cloning", _:
            return by_hand.dialogue_cloning(*values)
        case "opuslm-dialogue", "text", "audio":
            return by_hand.dialogue_speech(*values)
        case "opuslm-dialogue", _, output:
            return by_hand.dialogue(turns, spoken="audio" in output)
    raise AssertionError(asked)


def requested(converted: Converted, asked: Asked, case: Case) -> SpeechRequest:
    """The prompt, by the product."""
    engine, encoder = converted.harness.engine, converted.encoder
    request = as_speech_request(dataclasses.replace(case.request, prompt=[]))
    if asked.task == "text":
        return dataclasses.replace(request, prompt_ids=None, text=TEXT)
    parts = [
        Part(
            role,
            content,
            engine.tokenizer.encode(given) if isinstance(given, str) else encoder.encode(given),
        )
        for role, content, given in asked.turns
    ]
    layout = {
        "conversation": engine.spec.conversation,
        "transcription": engine.spec.transcription,
        "cloning": engine.spec.cloning,
    }[asked.task]
    assert layout is not None
    if asked.task == "cloning":
        text, speaker = (np.asarray(part.value) for part in parts)
        parts = cloning_parts(layout, text.tolist(), speaker)
    built = prompt(engine.spec, layout, asked.output, parts)
    return dataclasses.replace(request, prompt_ids=built.rows.tolist(), embedded=built.embedded)
