"""What a call for speech asks of the engine, and that what it only thinks is not heard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deployments.calls.messages import Finished, FirstAudio, SpeechCall, Utterance
from deployments.replica.narration import Narrator
from deployments.replica.utterance_requests import utterance_request
from engine_adapter.families import FAMILIES
from engine_adapter.request import RequestError, SpeechRequest, resolve
from engine_adapter.spec import SpecError, StreamSpec
from tests.official.published import BAGPIPER, BAGPIPER_TTS
from tests.unit.deployments.replica_stand_in import Engine, Vocoder, vocoding


class Words:
    """Three words of Bagpiper."""

    def encode(self, text: str) -> list[int]:
        known = {"Hi": [300, 301], "Gently.": [400], "Loudly.": [500]}
        return known[text]


def asked(spec: StreamSpec, **fields: Any) -> SpeechRequest:
    call = SpeechCall("r", (Utterance("Hi"),), voice="default", **fields)
    return utterance_request(spec, Words(), call, "Hi", 7)


def ids(spec: StreamSpec, request: SpeechRequest) -> list[int]:
    """Of stream 0; nothing stands on the others."""
    prompt = resolve(request, spec, None if request.text is None else [300, 301]).prompt
    assert not prompt[:, 1:].any()
    written: list[int] = prompt[:, 0].tolist()
    return written


def test_audio_of_the_text_itself() -> None:
    request = asked(BAGPIPER)
    assert (request.output, request.seed) == ("audio", 7)
    assert ids(BAGPIPER, request) == [1, 5, 7, 300, 301, 2, 6]
    instructed = asked(BAGPIPER, instructions="Gently.")
    assert ids(BAGPIPER, instructed) == [1, 4, 7, 400, 2, 5, 7, 300, 301, 2, 6]


def test_a_plan_in_text_and_then_audio() -> None:
    request = asked(BAGPIPER_TTS)
    assert request.output == "text+audio"
    assert ids(BAGPIPER_TTS, request) == [1, 5, 7, 300, 301, 2, 6, 7]
    instructed = asked(BAGPIPER_TTS, instructions="Gently.")
    assert instructed.output == "text+audio"
    assert ids(BAGPIPER_TTS, instructed) == [1, 4, 7, 400, 2, 5, 7, 300, 301, 2, 6, 7]


def test_guidance_is_the_model_s_unless_the_call_has_one() -> None:
    assert resolve(asked(BAGPIPER_TTS), BAGPIPER_TTS, [300]).cfg_scale == 3
    assert resolve(asked(BAGPIPER_TTS, cfg_scale=1.5), BAGPIPER_TTS, [300]).cfg_scale == 1.5


def test_instructions_of_the_model_where_the_call_has_none() -> None:
    spec = replace(BAGPIPER_TTS, instructions="Loudly.")
    assert ids(spec, asked(spec)) == [1, 4, 7, 500, 2, 5, 7, 300, 301, 2, 6, 7]
    other = asked(spec, instructions="Gently.")
    assert ids(spec, other) == [1, 4, 7, 400, 2, 5, 7, 300, 301, 2, 6, 7]


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("opuslm", {"instructions": "Loudly."}, "instructed has their place"),
        ("opuslm", {"speech_output": "text+audio"}, "speech_output: prompts have no"),
        ("opuslm-dialogue", {"speech_output": "text+audio"}, "answers text"),
        ("bagpiper", {"speech_output": "text"}, "speech_output: 'text' is not one of"),
    ],
)
def test_a_spec_that_cannot_speak_so_is_refused(
    family: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        replace(FAMILIES[family], **changes)


def test_a_recorded_voice_needs_a_family_that_clones() -> None:
    speaker = np.zeros((3, 9), np.int32)
    dialogue = FAMILIES["opuslm-dialogue"]
    request = asked(dialogue, speaker=speaker)
    assert request.prompt_ids is not None
    assert len(request.prompt_ids) == 2 + (2 + 500 + 8) + (2 + 2 + 8) + 1
    with pytest.raises(RequestError) as error:
        asked(BAGPIPER, speaker=speaker)
    assert error.value.param == "voice"


async def test_a_plan_is_neither_spoken_nor_counted() -> None:
    """Four words and thirty frames, each of which is two bytes of sound."""
    engine, vocoder = Engine(words=4, frames=30), Vocoder()
    request = SpeechRequest(prompt_ids=[5, 89], output="text+audio", seed=1)
    narrator = Narrator(engine, vocoding(vocoder))  # type: ignore[arg-type]
    spoken = narrator.speak("r", [engine.prepare(request)], [0.0], None)
    first, *pieces, last = [event async for event in spoken]
    assert isinstance(first, FirstAudio)
    assert sum(len(piece) for piece in pieces if isinstance(piece, bytes)) == 60 - len(first.pcm)
    assert last == Finished("stop", 2, 30)
