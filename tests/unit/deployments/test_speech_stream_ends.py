"""What ends a conversation over a WebSocket but the client, and what is noted of it."""

import asyncio
import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import WebSocketTestSession

from deployments.calls.messages import (
    SpeechCall,
)
from deployments.guards import audit, keys_file
from deployments.guards.audit_log import AuditLog
from deployments.guards.keys import hash_key, key_id, make_key
from deployments.guards.settings import AuditSettings, ClientLimits, GuardSettings
from deployments.models.catalog import ServedModel
from tests.unit.deployments.speech_stream_stand_in import (
    LOCAL,
    RATE,
    START,
    Events,
    StandIn,
    assert_closes,
    connection,
    guarded,
    say,
    until,
)


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


def test_a_service_that_stops_takes_no_more_and_says_so() -> None:
    with to_be_stopped(engines := StandIn()) as (socket, stop):
        socket.send_json(START)
        say(socket, "This goes on forever and ever. And then")
        until(socket, "utterance")
        stop()
        time.sleep(0.2)  # it is told while the first sentence is spoken
        say(socket, "More.")
        socket.send_json({"type": "flush"})
        for _ in range(2):
            error = until(socket, "error")[0][-1]["error"]
            assert (error["type"], error["code"]) == ("unavailable", "draining")
        socket.send_json({"type": "end"})
        socket.send_json({"type": "cancel"})
        said, _ = until(socket, "cancelled")
        assert [message["type"] for message in said] == ["cancelled"]
        until(socket, "done")
        assert_closes(socket, 1001)
    assert engines.texts == ["This goes on forever and ever."]


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
