"""How long a conversation over a WebSocket lasts, in audio and in silence."""

import time

import pytest
from starlette.websockets import WebSocketDisconnect

from deployments.calls.messages import (
    Refused,
)
from deployments.speech import allowance
from deployments.speech.session import MESSAGE_BYTES
from tests.unit.deployments.speech_stream_stand_in import (
    RATE,
    START,
    StandIn,
    assert_closes,
    connection,
    say,
    until,
)


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


def test_no_message_is_larger_than_clients_take() -> None:
    """Slow audio comes in large pieces."""
    sizes = []
    with connection(StandIn()) as socket:
        socket.send_json(START | {"speed": 0.25, "sample_rate": 48_000})
        say(socket, "One sentence is this. ")
        socket.send_json({"type": "flush"})
        while '"done"' not in ((message := socket.receive()).get("text") or ""):
            sizes.append(len(message.get("bytes") or b""))
    assert max(sizes) == MESSAGE_BYTES
    assert sum(sizes) == pytest.approx(2 / 0.25 * 48_000 * 2, rel=0.05)


def test_an_idle_connection_is_closed() -> None:
    with connection(StandIn(), stream_idle_seconds=0.1) as socket:
        socket.send_json(START)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1000


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
