"""``/v1/audio/speech/stream``, with a stand-in for the engine replicas."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from deployments.calls.messages import (
    Accepted,
    Finished,
    FirstAudio,
    Refused,
    SpeechCall,
    SpeechEvent,
)
from deployments.front_end.ingress import create_app
from deployments.guards import audit, keys_file
from deployments.guards.audit_log import AuditLog
from deployments.guards.keys import hash_key, key_id, make_key
from deployments.guards.runtime import Guards
from deployments.guards.settings import AuditSettings, ClientLimits, GuardSettings
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ServiceSettings
from deployments.speech import allowance
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import CODES, Front, tone, wav
from tests.unit.deployments.guarded_app import InProcess
from tests.unit.deployments.stand_in import error_of

RATE = 24_000
CARD = ModelCard("demo", ("slt", "rms"), 1.5, "english", 60)
START = {"type": "start", "model": "demo", "voice": "slt", "seed": 5}
LOCAL = "ws://localhost/v1/audio/speech/stream"


class Events:
    """Two pieces of audio per utterance; an endless utterance, should its text say so."""

    def __init__(self, call: SpeechCall, refusals: list[Refused]) -> None:
        self.call = call
        self.cancelled = False
        self._events = self._script(refusals)

    async def _script(self, refusals: list[Refused]) -> AsyncIterator[SpeechEvent]:
        if refusals:
            yield refusals.pop(0)
            return
        yield Accepted(self.call.seed or 0, RATE)
        yield FirstAudio(b"\1\1" * RATE, 0.01, 0.1, 0.02)
        while "forever" in self.call.utterances[0].text:
            await asyncio.sleep(0.001)
            yield b"\2\2" * 10
        yield b"\3\3" * RATE
        yield Finished("stop", 10, 50)

    def __aiter__(self) -> AsyncIterator[SpeechEvent]:
        return self._events

    async def __anext__(self) -> SpeechEvent:
        return await anext(self._events)

    def cancel(self) -> None:
        self.cancelled = True


class StandIn:
    """Keeps the calls it was sent; refuses the first ones as it is told."""

    def __init__(self, *refusals: Refused) -> None:
        self.sent: list[Events] = []
        self._refusals = list(refusals)

    def speak(self, call: SpeechCall) -> Events:
        self.sent.append(Events(call, self._refusals))
        return self.sent[-1]

    @property
    def texts(self) -> list[str]:
        return [utterance.text for e in self.sent for utterance in e.call.utterances]

    async def check_health(self) -> None:
        return


@contextmanager
def connection(
    engines: StandIn, address: str = LOCAL, **settings: Any
) -> Iterator[WebSocketTestSession]:
    service = ServiceSettings(retry_after_seconds=1, **settings)
    catalog = Catalog([ServedModel(CARD, engines)], service, created=1)
    # The test client cancels an application that is still at work when its client leaves.
    with (
        TestClient(create_app(catalog)) as http,
        suppress(CancelledError),
        http.websocket_connect(address) as socket,
    ):
        yield socket


def say(socket: WebSocketTestSession, *texts: str) -> None:
    for text in texts:
        socket.send_json({"type": "text", "text": text})


def until(socket: WebSocketTestSession, last: str) -> tuple[list[dict[str, Any]], bytes]:
    """The messages up to the first of a type, and the audio between them."""
    said: list[dict[str, Any]] = []
    audio = b""
    while not said or said[-1]["type"] != last:
        message = socket.receive()
        if message.get("bytes") is not None:
            audio += message["bytes"]
        elif message["type"] == "websocket.close":
            raise AssertionError(f"closed with {message['code']} after {said}")
        else:
            said.append(json.loads(message["text"]))
    return said, audio


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
    with connection(StandIn(), max_input_characters=30) as socket:
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
        socket.send_json({"type": "end"})
        until(socket, "done")
    assert (error["param"], error["type"]) == ("input", "invalid_request_error")
    assert engines.texts == ["English is spoken here."]


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
    with connection(StandIn(), max_input_characters=100) as socket:
        socket.send_json(START)
        say(socket, "x" * 101)
        assert until(socket, "error")[0][-1]["error"]["param"] == "text"


@pytest.mark.parametrize(
    ("asked", "most"), [({"max_duration_seconds": 3.0}, 600.0), ({}, 3.0)], ids=["asked", "service"]
)
def test_the_duration_is_limited_over_all_utterances(asked: dict[str, float], most: float) -> None:
    engines = StandIn()
    with connection(engines, max_duration_seconds=most) as socket:
        socket.send_json(START | asked)
        say(socket, "The first one is short. The second one is too. The third one is not said.")
        socket.send_json({"type": "end"})
        said, _ = until(socket, "done")
    assert said[-1]["finish_reason"] == "length"
    assert [e.call.max_seconds for e in engines.sent] == [3.0, pytest.approx(1.0, abs=0.01)]


@pytest.mark.parametrize(("speed", "last"), [(1, "stop"), (2, "length")])
def test_all_audio_of_a_connection_is_limited_as_it_is_heard(speed: int, last: str) -> None:
    """Two sentences of two seconds are the whole of it, or fast ones and half of the next two."""
    engines = StandIn()
    with connection(engines, max_stream_seconds=3.0) as socket:
        socket.send_json(START | {"speed": speed})
        for _ in range(1 + speed):  # what was said before counts
            say(socket, "One sentence is this. Another one is this. ")
            socket.send_json({"type": "flush"})
        said, audio = until(socket, "error")
        assert_closes(socket, 1008)
    assert [m["type"] for m in said[-2:]] == ["done", "error"]
    assert said[-2]["finish_reason"] == last
    assert said[-1]["error"]["code"] == "max_stream_seconds"
    assert len(audio) / 2 / RATE == pytest.approx(3, abs=2)  # the stand-in does not cut


def test_audio_is_not_sent_long_before_it_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "AHEAD_SECONDS", 3.5)
    with connection(StandIn()) as socket:
        socket.send_json(START)
        say(socket, "One sentence is this. Another one is this. ")
        socket.send_json({"type": "flush"})
        began = time.monotonic()
        until(socket, "done")
        assert time.monotonic() - began > 0.5
        say(socket, "Let us talk about it again, without an end. And")
        socket.send_json({"type": "cancel"})
        until(socket, "cancelled")
        began = time.monotonic()
        say(socket, "This is heard at once. ")
        socket.send_json({"type": "flush"})
        until(socket, "done")
        assert time.monotonic() - began < 0.4


def test_an_idle_connection_is_closed() -> None:
    with connection(StandIn(), stream_idle_seconds=0.1) as socket:
        socket.send_json(START)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1000


def assert_closes(socket: WebSocketTestSession, code: int = 1000) -> None:
    message = socket.receive()
    assert (message["type"], message["code"]) == ("websocket.close", code)


def test_a_connection_that_never_starts_is_closed() -> None:
    with connection(StandIn(), stream_idle_seconds=0.1) as socket:
        assert_closes(socket)


@pytest.mark.parametrize("flush", [True, False])
def test_a_connection_is_idle_once_what_it_had_to_say_is_said(flush: bool) -> None:
    with connection(StandIn(), stream_idle_seconds=0.2) as socket:
        socket.send_json(START)
        say(socket, "The first sentence is here. The second")
        if flush:
            socket.send_json({"type": "flush"})
            until(socket, "done")
        else:
            until(socket, "utterance")
            for _ in range(2):  # all of its audio
                assert socket.receive_bytes()
        assert_closes(socket)


def test_a_connection_that_waits_for_room_is_not_idle() -> None:
    engines = StandIn(Refused(429, "full", retry_after=1))
    with connection(engines, stream_idle_seconds=0.2) as socket:
        socket.send_json(START)
        say(socket, "Hello there, everybody in the room. And")
        assert until(socket, "utterance")[0][-1]["text"] == "Hello there, everybody in the room."


class Broken(StandIn):
    def speak(self, call: SpeechCall) -> Events:
        raise KeyError("a mistake of ours")


def test_a_mistake_of_the_service_is_said_and_closes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records: list[audit.AuditRecord] = []
    monkeypatch.setattr(AuditLog, "write", lambda _, record: records.append(record))
    settings = GuardSettings(audit=AuditSettings(path=str(tmp_path / "audit.jsonl")))
    with guarded(settings, Broken())[0] as http, http.websocket_connect(LOCAL) as socket:
        socket.send_json(START)
        say(socket, "Hello there, everybody in the room. And")
        error = until(socket, "error")[0][-1]["error"]
        assert (error["type"], error["message"]) == ("server_error", "internal error")
        assert_closes(socket, 1011)
    assert "a mistake of ours" in caplog.text
    assert [record.end for record in records] == ["failed"]


def guarded(settings: GuardSettings, engines: StandIn) -> tuple[TestClient, Guards]:
    service = ServiceSettings(retry_after_seconds=1, stream_idle_seconds=5)
    catalog = Catalog([ServedModel(CARD, engines)], service, created=1)
    guards = Guards.begin(settings, service, InProcess(), {})
    return TestClient(create_app(catalog, guards)), guards


def test_the_audio_of_a_day_ends_within_a_connection() -> None:
    engines = StandIn()
    settings = GuardSettings(limits=ClientLimits(audio_seconds_per_day=3))
    with guarded(settings, engines)[0] as http, http.websocket_connect(LOCAL) as socket:
        socket.send_json(START)
        say(socket, "One sentence is this. Another one is this. A third one is never said. And")
        said, audio = until(socket, "error")
        assert said[-1]["error"]["code"] == "audio_seconds_per_day"
        assert_closes(socket, 1013)
    assert len(engines.sent) == 2  # of two seconds each: what has begun is said
    assert len(audio) >= 2 * 4 * RATE


def test_a_key_that_is_revoked_ends_an_open_connection(tmp_path: Path) -> None:
    engines = StandIn()
    file = tmp_path / "keys.yaml"
    key = make_key()
    with keys_file.editing(file) as content:
        content.add("alice", hash_key(key))
    http, guards = guarded(GuardSettings(keys_file=str(file)), engines)
    assert guards.keys is not None
    bearer = {"authorization": f"Bearer {key}"}
    with http, http.websocket_connect(LOCAL, headers=bearer) as socket:
        socket.send_json(START)
        say(socket, "One sentence is this. A")
        until(socket, "utterance")
        with keys_file.editing(file) as content:
            content.revoke(key_id(hash_key(key)))
        guards.keys.refresh()
        say(socket, "nother one is this. And")
        assert until(socket, "error")[0][-1]["error"]["code"] == "invalid_api_key"
        assert_closes(socket, 1008)
    assert engines.texts == ["One sentence is this."]


@pytest.mark.parametrize("kept", [True, False])
def test_the_audit_log_has_what_was_said_as_far_as_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(audit, "_MOST_TEXT", 30)
    monkeypatch.setattr(audit, "_MOST_AUDIO", 3 * RATE)
    records: list[audit.AuditRecord] = []
    monkeypatch.setattr(AuditLog, "write", lambda _, record: records.append(record))
    settings = AuditSettings(path=str(tmp_path / "audit.jsonl"), text=kept, audio=kept)
    with (
        guarded(GuardSettings(audit=settings), StandIn())[0] as http,
        http.websocket_connect(LOCAL) as socket,
    ):
        socket.send_json(START)
        say(socket, "Hello there, ", "everybody in ", "the room.")
        socket.send_json({"type": "end"})
        _, sent = until(socket, "done")
        assert_closes(socket)
    [record] = records
    assert (record.input_characters, record.media_type) == (35, "audio/pcm")
    assert record.text == ("Hello there, everybody in the " if kept else None)
    assert record.texts == ([record.text[:13], "everybody in ", "the "] if record.text else [])
    heard = base64.b64decode(record.audio or "")
    assert sent.startswith(heard)
    assert bool(heard) == record.cut == kept


def test_a_store_that_cannot_be_read_is_said_and_closes(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no database " * 99)
    with connection(StandIn(), store=str(tmp_path / "store")) as socket:
        socket.send_json(START | {"voice": "recorded"})
        assert until(socket, "error")[0][-1]["error"]["code"] == "store_unavailable"
        assert_closes(socket, 1013)


def test_texts_are_written_out_away_from_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite = ServedModel.rewrite

    def away(*args: Any, **options: Any) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return rewrite(*args, **options)

    monkeypatch.setattr(ServedModel, "rewrite", away)
    with connection(StandIn()) as socket:
        socket.send_json(START)
        say(socket, "It is 5 o'clock. It is", " 6.")
        socket.send_json({"type": "end"})
        said, _ = until(socket, "done")
    spoken = " ".join(m["text"] for m in said if m["type"] == "utterance")
    assert spoken == "It is five o'clock. It is six."


@contextmanager
def to_be_stopped(engines: StandIn) -> Iterator[tuple[WebSocketTestSession, Callable[[], None]]]:
    """A connection, and what the stop of its service begins with."""
    client, guards = guarded(GuardSettings(), engines)
    with client as http, http.websocket_connect(LOCAL) as socket:
        assert http.portal is not None
        yield socket, partial(http.portal.call, guards.drain.begin)


def test_a_service_that_stops_speaks_what_it_was_given_and_closes() -> None:
    with to_be_stopped(engines := StandIn()) as (socket, stop):
        socket.send_json(START)
        say(socket, "The first sentence is here. And that")
        assert until(socket, "utterance")[0][-1]["text"] == "The first sentence is here."
        stop()
        said, audio = until(socket, "done")
        assert engines.texts == ["The first sentence is here.", "And that"]
        assert said[-1]["finish_reason"] == "stop"
        assert len(audio) > 2 * 2 * RATE
        assert_closes(socket, 1001)


def test_a_service_that_stops_does_not_wait_for_who_says_nothing() -> None:
    with to_be_stopped(StandIn()) as (socket, stop):
        stop()
        assert_closes(socket, 1001)
    with to_be_stopped(StandIn()) as (socket, stop):
        socket.send_json(START)
        stop()
        until(socket, "done")
        assert_closes(socket, 1001)


def test_what_is_cancelled_while_a_service_stops_is_over() -> None:
    with to_be_stopped(StandIn()) as (socket, stop):
        socket.send_json(START)
        say(socket, "This goes on forever and ever. And then")
        until(socket, "utterance")
        stop()
        socket.send_json({"type": "cancel"})
        until(socket, "cancelled")
        until(socket, "done")
        assert_closes(socket, 1001)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ('{"type": "text"}', "text: is required"),
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
