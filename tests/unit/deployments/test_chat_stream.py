"""What ``/v1/chat/completions`` streams, with a stand-in for the engine replicas."""

import base64
import json
from pathlib import Path

import pytest

from tests.unit.deployments.answering_stand_in import PCM, RATE, SPOKEN, WRITTEN, Front
from tests.unit.deployments.chat_client import AUDIO, ask, events_of


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store")


async def test_text_in_a_stream(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", WRITTEN)
    events = events_of(await ask(front, stream=True))
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1
    choices = [event["choices"][0] for event in events]
    assert choices[0]["delta"]["role"] == "assistant"
    assert "".join(c["delta"].get("content", "") for c in choices) == " Good morning. "
    assert [c["finish_reason"] for c in choices] == [*[None] * (len(choices) - 1), "stop"]
    assert not any("usage" in event for event in events)


async def test_audio_in_a_stream(front: Front) -> None:
    audio = {"voice": "default", "format": "pcm16"}
    asked = AUDIO | {"audio": audio, "stream_options": {"include_usage": True}}
    events = events_of(await ask(front, stream=True, **asked))
    *chunks, usage = events
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens_details"] == {"text_tokens": 3, "audio_tokens": 2}
    assert all(chunk["usage"] is None for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    sound = [delta["audio"] for delta in deltas if "audio" in delta]
    assert "".join(part.get("transcript", "") for part in sound) == "Good morning."
    pcm = b"".join(base64.b64decode(part.get("data", "")) for part in sound)
    assert len(pcm) == len(PCM) * 2 * 24_000 // RATE
    [audio_id] = {part["id"] for part in sound if "id" in part}
    assert sum("expires_at" in part for part in sound) == 1
    kept = front.catalog.answers.find(audio_id)
    assert kept is not None
    assert kept.transcript == "Good morning."


async def test_a_stream_that_fails_has_an_error_and_no_end(tmp_path: Path) -> None:
    front = Front(tmp_path / "store", SPOKEN[:3])
    answer = await ask(front, stream=True)
    *_, last = [line for line in answer.text.split("\n\n") if line]
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["type"] == "server_error"
    assert "[DONE]" not in answer.text
