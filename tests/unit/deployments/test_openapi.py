"""Answers are as ``/openapi.json`` says, whatever is asked: schemathesis tries."""

from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
)
from schemathesis.transport.serialization import Binary

from deployments.calls.answer_messages import AnswerCall
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from tests.unit.deployments import answering_stand_in, speaking_stand_in
from tests.unit.deployments.answering_stand_in import SPOKEN, WRITTEN, Front, tone, wav
from tests.unit.deployments.stand_in import Events

SPEECH = "POST /v1/audio/speech"
CHAT = "POST /v1/chat/completions"
TRANSCRIPTION = "POST /v1/audio/transcriptions"
VOICES = "POST /v1/audio/voices"
MODELS = {SPEECH: "demo", CHAT: "dialogue", TRANSCRIPTION: "opuslm"}
OPEN = {
    SPEECH: {"input", "instructions", "max_duration_seconds", "sample_rate", "stream"},
    CHAT: {"audio", "max_tokens", "messages", "stream_options"},
    TRANSCRIPTION: {"stream", "timestamp_granularities[]"},
    VOICES: {"audio_sample", "file", "name"},
}
"""Fields that are refused for what a schema cannot say: another field, the model, a setting, what a
file or text contains."""
RECORDING = Binary(wav(tone(0.6)))
QUESTION = {"role": "user", "content": "How far is it?"}


class StandIn(answering_stand_in.StandIn):
    """Speaks, writes, and does both."""

    def speak(self, call: Any) -> Any:
        return Events(speaking_stand_in.SPOKEN)

    def answer(self, call: AnswerCall) -> Any:
        return Events(SPOKEN if "audio" in call.output else WRITTEN)


@pytest.fixture(scope="module")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> BaseSchema:
    """The schema of the front end over a stand-in for the engine replicas."""
    guards = Guards(GuardSettings(open=True))  # it asks for another name than this machine's
    front = Front(tmp_path_factory.mktemp("store") / "store.sqlite3", StandIn([]), guards)
    return schemathesis.openapi.from_asgi("/openapi.json", front.app)


def operations(openapi: BaseSchema) -> list[schemathesis.APIOperation]:
    found = [result.ok() for result in openapi.get_all_operations() if isinstance(result, Ok)]
    assert len(found) >= 9
    return found


def name_what_is_there(case: schemathesis.Case) -> None:
    """Puts a model and a voice that are served where those that were made up stand."""
    if not isinstance(case.body, dict) or case.operation.label not in MODELS:
        return
    body: dict[str, Any] = dict(case.body)
    case.body = body
    if isinstance(body.get("model"), str) and body["model"]:
        body["model"] = MODELS[case.operation.label]
    if isinstance(body.get("voice"), str):
        body["voice"] = "rms"
    audio = body.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("voice"), str):
        body["audio"] = {**audio, "voice": "default"}


def make_sense(case: schemathesis.Case) -> None:
    """Puts a recording where a file is wanted, and a question behind a conversation."""
    body: Any = case.body
    if case.operation.label == CHAT:
        body["messages"] = [*body["messages"], QUESTION]
    elif case.operation.label == TRANSCRIPTION:
        body["file"] = RECORDING


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_every_answer_is_as_described(
    openapi: BaseSchema, mode: schemathesis.GenerationMode
) -> None:
    """What the schema allows is done, or refused by the name of a field that is open; what it
    does not allow is refused."""
    positive = mode is schemathesis.GenerationMode.POSITIVE
    answers: Counter[tuple[str, int]] = Counter()
    for operation in operations(openapi):

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case: schemathesis.Case) -> None:
            name_what_is_there(case)
            if positive:
                make_sense(case)
            answer = case.call()
            answers[case.operation.label, answer.status_code] += 1
            refused = answer.status_code == 400 and answer.json()["error"]["param"] in OPEN.get(
                case.operation.label, ()
            )
            # Schemathesis takes a form for malformed once it is changed.
            excluded: list[Any] = [negative_data_rejection] if positive else []
            excluded += [positive_data_acceptance] if refused else []
            case.validate_response(answer, excluded_checks=excluded)

        try:
            check()
        except Unsatisfiable:
            assert not positive  # nothing can be wrong there
        if positive and operation.label in MODELS:
            assert answers[operation.label, 200] >= 3, answers


def test_operations_have_the_names_that_a_generated_client_should_use(openapi: BaseSchema) -> None:
    names = [operation.definition.raw["operationId"] for operation in operations(openapi)]
    assert {"create_speech", "create_chat_completion", "create_transcription"} <= set(names)
    assert len(set(names)) == len(names)
    assert all(name.islower() and "v1" not in name for name in names)


def test_a_voice_is_removed_without_a_body(openapi: BaseSchema) -> None:
    responses = openapi["/v1/audio/voices/{name}"]["DELETE"].definition.raw["responses"]
    assert "200" not in responses
    assert "content" not in responses["204"]


def test_what_numbers_may_be_is_said(openapi: BaseSchema) -> None:
    body = openapi.raw_schema["components"]["schemas"]["SpeechBody"]["properties"]
    number = next(each for each in body["cfg_scale"]["anyOf"] if each["type"] == "number")
    assert (number["minimum"], number["maximum"]) == (1, 100)


def test_nothing_is_said_of_answers_that_do_not_exist(openapi: BaseSchema) -> None:
    for operation in operations(openapi):
        responses = operation.definition.raw["responses"]
        assert "422" not in responses, operation.label
        assert {"4XX", "5XX"} <= set(responses), operation.label
