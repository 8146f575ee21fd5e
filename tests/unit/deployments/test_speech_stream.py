"""``/v1/audio/speech/stream``, with a stand-in for the engine replicas."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse

from deployments.calls.messages import (
    Refused,
)
from deployments.front_end.ingress import create_app
from deployments.models.catalog import Catalog
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import CODES, Front, tone, wav
from tests.unit.deployments.speech_stream_stand_in import (
    LOCAL,
    RATE,
    START,
    StandIn,
    assert_closes,
    connection,
    say,
    until,
)
from tests.unit.deployments.stand_in import error_of


def test_text_in_pieces_is_spoken_sentence_by_sentence() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "I paid $", "4.50 for it", ". Then we all", " went home again. And")
        say(socket, " that was all there was")
        socket.send_json({"type": "end"})
        said, audio = until(socket, "done")
        assert socket.receive()["type"] == "websocket.close"
    spoken = ["I paid four dollars and fifty cents for it.", "Then we all went home again."]
    spoken.append("And that was all there was")
    assert engines.texts == spoken
    assert said[0] == {
        "type": "started",
        "seed": 5,
        "sample_rate": RATE,
        "media_type": "audio/pcm",
    }
    assert [(m["index"], m["text"]) for m in said[1:-1]] == list(enumerate(spoken))
    assert said[-1]["finish_reason"] == "stop"
    assert said[-1]["usage"] == {"input_tokens": 30, "output_tokens": 150, "total_tokens": 180}
    pauses = sum(e.call.utterances[0].pause for e in engines.sent[:-1])
    assert len(audio) == 2 * RATE * 6 + 2 * round(RATE * pauses)


def test_a_sentence_is_spoken_before_the_text_has_ended() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "The first sentence is here. The second")
        until(socket, "utterance")
        assert engines.texts == ["The first sentence is here."]


def test_every_utterance_has_its_place_in_the_sequence_of_seeds() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "One sentence is this. Another sentence is this. ")
        socket.send_json({"type": "flush"})
        until(socket, "done")
        say(socket, "And one more comes later.")
        socket.send_json({"type": "end"})
        until(socket, "done")
    assert [(e.call.seed, e.call.first_index) for e in engines.sent] == [(5, 0), (5, 1), (5, 2)]


def test_cancel_stops_at_once_and_the_conversation_goes_on() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "This goes on forever and ever. This is never said. ")
        until(socket, "utterance")
        socket.send_json({"type": "cancel"})
        until(socket, "cancelled")
        say(socket, "Something else is said.")
        socket.send_json({"type": "end"})
        said, audio = until(socket, "done")
    assert [m["type"] for m in said] == ["started", "utterance", "done"]
    assert len(audio) == 2 * 2 * RATE  # all of it of the second
    assert engines.texts == ["This goes on forever and ever.", "Something else is said."]
    assert [e.cancelled for e in engines.sent] == [True, False]


def test_every_flush_has_its_done_however_fast_the_text_comes() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "This is spoken first.")
        socket.send_json({"type": "flush"})
        socket.send_json({"type": "flush"})
        say(socket, "This is spoken afterwards.")
        socket.send_json({"type": "flush"})
        say(socket, "And this is the end of it. It has not")
        socket.send_json({"type": "end"})
        said = [message for _ in range(4) for message in until(socket, "done")[0]]
        assert_closes(socket)
    spoken = ["started", "utterance", "done"]
    assert [m["type"] for m in said] == [*spoken, "done", *spoken, *spoken[:2], *spoken[1:]]
    assert [m["usage"]["output_tokens"] for m in said if m["type"] == "done"] == [50, 0, 50, 100]


def test_nothing_is_taken_after_the_end() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "This goes on forever and ever.")
        socket.send_json({"type": "end"})
        until(socket, "utterance")
        for late in ({"type": "text", "text": "Too late."}, {"type": "flush"}, {"type": "end"}):
            socket.send_json(late)
            error = until(socket, "error")[0][-1]["error"]
            assert error["param"] == ("text" if "text" in late else "type")
            assert "after end" in error["message"]
        socket.send_json({"type": "cancel"})  # forgets the end, too
        until(socket, "cancelled")
        say(socket, "Something else is said.")
        socket.send_json({"type": "end"})
        until(socket, "done")
        assert_closes(socket)
    assert engines.texts == ["This goes on forever and ever.", "Something else is said."]


def test_flushes_that_wait_are_limited() -> None:
    with connection(StandIn(), max_stream_characters=30) as socket:
        socket.send_json(START)
        say(socket, "This goes on forever and ever.")
        for _ in range(40):
            socket.send_json({"type": "flush"})
        assert until(socket, "error")[0][-1]["error"]["param"] == "type"


def test_a_recorded_voice_and_the_class_reach_the_replica(tmp_path: Path) -> None:
    front = Front(tmp_path / "store")
    front.catalog.voices.store.add(StoredVoice("ada", 1, None), wav(tone(1)))
    engines = StandIn()
    model = replace(front.catalog.model("opuslm"), engines=engines)
    catalog = Catalog([model], front.catalog.service, created=1)
    headers = {"x-priority-class": "batch"}
    with (
        TestClient(create_app(catalog)) as http,
        http.websocket_connect(LOCAL, headers=headers) as socket,
    ):
        socket.send_json(START | {"model": "opuslm", "voice": "ada"})
        say(socket, "Hello there.")
        socket.send_json({"type": "end"})
        until(socket, "done")
        assert_closes(socket)
    [sent] = engines.sent
    assert sent.call.speaker is not None
    assert sent.call.speaker.tolist() == CODES.tolist()
    assert (sent.call.voice, sent.call.priority) == ("ada", "batch")


def test_a_client_that_leaves_ends_the_work() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "This goes on forever and ever. And then")
        until(socket, "utterance")
    assert engines.sent[0].cancelled


def test_a_replica_without_room_is_asked_again() -> None:
    engines = StandIn(Refused(429, "full"))
    with connection(engines) as socket:
        socket.send_json(START)
        say(socket, "Hello there.")
        socket.send_json({"type": "end"})
        said, _ = until(socket, "done")
    assert said[-1]["usage"]["output_tokens"] == 50
    assert len(engines.sent) == 2


def test_what_cannot_be_spoken_is_said_and_the_rest_is_spoken() -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        russian = "\N{CYRILLIC CAPITAL LETTER DE}\N{CYRILLIC SMALL LETTER A}"
        say(socket, f"{russian} is Russian, is it? English is spoken here.")
        error = until(socket, "error")[0][-1]["error"]
        socket.send_json({"type": "flush"})
        assert until(socket, "done")[0][-1]["finish_reason"] == "incomplete"
        say(socket, "Hello \N{CYRILLIC CAPITAL LETTER DE} there, both. All of this is.")
        until(socket, "error")
        socket.send_json({"type": "flush"})
        assert until(socket, "done")[0][-1]["finish_reason"] == "incomplete"
        say(socket, "So is this.")
        socket.send_json({"type": "end"})
        assert until(socket, "done")[0][-1]["finish_reason"] == "stop"
    assert (error["param"], error["type"]) == ("text", "invalid_request_error")
    assert engines.texts == [
        "is Russian, is it?",
        "English is spoken here.",
        "Hello there, both.",
        "All of this is.",
        "So is this.",
    ]


@pytest.mark.parametrize("text", ["...", "# **\n", "<br/>", "\N{BLACK SCISSORS}"])
def test_text_without_a_word_is_an_error_and_incomplete(text: str) -> None:
    with connection(StandIn()) as socket:
        socket.send_json(START)
        say(socket, *text)
        socket.send_json({"type": "flush"})
        error, done = until(socket, "done")[0]
        assert (error["type"], error["error"]["param"]) == ("error", "text")
        assert (done["finish_reason"], done["usage"]["output_tokens"]) == ("incomplete", 0)
        say(socket, "  \n")
        socket.send_json({"type": "end"})
        assert until(socket, "done")[0][-1]["finish_reason"] == "stop"


def test_nothing_to_speak_is_done_at_once() -> None:
    with connection(StandIn()) as socket:
        socket.send_json(START)
        socket.send_json({"type": "end"})
        assert until(socket, "done")[0][-1]["usage"]["output_tokens"] == 0


@pytest.mark.parametrize(
    ("first", "param", "code"),
    [
        ({"type": "text", "text": "Hello."}, "type", None),
        ({"type": "start", "voice": "slt"}, "model", None),
        (START | {"model": "gpt"}, "model", "model_not_found"),
        (START | {"voice": "alloy"}, "voice", "voice_not_found"),
        (START | {"response_format": "wave"}, "response_format", None),
        (START | {"speed": 9}, "speed", None),
        (START | {"max_duration_seconds": 1e9}, "max_duration_seconds", None),
        (START | {"instructions": "Whisper."}, "instructions", "ability_missing"),
        (START | {"input": "Hello."}, "input", None),
        ({"type": "begin"}, "type", None),
        ({"type": "text"}, "type", None),
        ({}, "type", None),
    ],
)
def test_a_bad_start_is_named_and_closes(first: Any, param: str, code: str | None) -> None:
    with connection(StandIn()) as socket:
        socket.send_json(first)
        error = until(socket, "error")[0][-1]["error"]
        assert (error["param"], error["code"]) == (param, code)
        assert socket.receive()["code"] == 1008


@pytest.mark.parametrize("message", ["{", "[1]", "null", '{"type": "text"}', '{"type": "start"}'])
def test_a_bad_message_is_refused_and_the_conversation_goes_on(message: str) -> None:
    engines = StandIn()
    with connection(engines) as socket:
        socket.send_json(START)
        socket.send_text(message)
        until(socket, "error")
        socket.send_bytes(b"\xff")
        until(socket, "error")
        say(socket, "Hello there.")
        socket.send_json({"type": "end"})
        until(socket, "done")


def test_an_engine_that_fails_closes_the_connection() -> None:
    with connection(StandIn(Refused(503, "no engine is ready"))) as socket:
        socket.send_json(START)
        say(socket, "Hello there, everybody in the room. And")
        assert until(socket, "error")[0][-1]["error"]["code"] == "engine_unavailable"
        assert socket.receive()["code"] == 1013


def test_too_much_waiting_text_is_refused() -> None:
    with connection(StandIn(), max_stream_characters=100) as socket:
        socket.send_json(START)
        say(socket, "x" * 101)
        assert until(socket, "error")[0][-1]["error"]["param"] == "text"


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ('{"type": "text"}', "text: is required"),
        ('{"type": "start"}', "type: start comes only once"),
        ('{"type": "begin"}', "type: must be text, flush, cancel or end"),
        ('{"type": "text", "text": 3}', "text: must be a string"),
        ('{"type": "text", "type": "text", "text": "a"}', "it has 'type' twice in one object"),
        ('{"type": ', "it is not JSON: Expecting value (character 9)"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(message: str, says: str) -> None:
    with connection(StandIn()) as socket:
        socket.send_json(START)
        socket.send_text(message)
        assert socket.receive_json()["error"]["message"].endswith(says)


def test_a_parameter_of_the_address_is_refused() -> None:
    with connection(StandIn(), address=f"{LOCAL}?model=demo") as socket:
        assert socket.receive_json()["error"]["param"] == "model"


def test_where_there_is_no_websocket_the_answer_says_so() -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as caught,
        connection(StandIn(), address=LOCAL.replace("/stream", "")),
    ):
        pass
    assert caught.value.status_code == 404
    error = error_of(caught.value)
    assert (error["code"], error["message"]) == ("unknown_url", "no WebSocket at /v1/audio/speech")
