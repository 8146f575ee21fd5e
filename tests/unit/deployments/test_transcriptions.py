"""What ``/v1/audio/transcriptions`` answers, with a stand-in for the engine replicas."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from deployments.calls import patience
from deployments.calls.answer_messages import Answered, Clip
from deployments.calls.messages import Accepted, Refused
from tests.unit.deployments.answering_stand_in import (
    CODES,
    RATE,
    WRITTEN,
    Front,
    tone,
    wav,
)
from tests.unit.deployments.stand_in import error_of

URL = "/v1/audio/transcriptions"
SPEECH = wav(np.concatenate([tone(1), np.zeros(RATE), tone(2)]))
SILENCE = wav(np.zeros(3 * RATE))


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store", WRITTEN)


async def send(front: Front, file: bytes | None = SPEECH, **fields: Any) -> httpx.Response:
    data = {key: value for key, value in {"model": "opuslm", **fields}.items() if value is not None}
    files = {} if file is None else {"file": ("a.wav", file)}
    return await front.http.post(URL, data=data, files=files)


async def test_json(front: Front) -> None:
    answer = await send(front)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["text"] == "Good morning. Good morning."
    assert body["usage"] == {
        "type": "tokens",
        "input_tokens": 80,
        "output_tokens": 6,
        "total_tokens": 86,
        "input_token_details": {"audio_tokens": 20, "text_tokens": 60},
    }
    assert answer.headers["x-finish-reason"] == "stop"
    first, second = front.engines.calls
    assert (first.task, first.output, first.temperature) == ("transcription", "text", 0.0)
    [part] = second.parts
    assert (part.role, part.content) == ("user", "audio")
    assert isinstance(part.value, Clip)
    assert 2 * RATE <= len(part.value.samples) <= 2.5 * RATE


async def test_temperature_and_the_class_reach_the_replica(front: Front) -> None:
    front.http.headers["x-priority-class"] = "batch"
    await send(front, temperature=0.5)
    assert {(c.temperature, c.priority) for c in front.engines.calls} == {(0.5, "batch")}


async def test_text_and_subtitles(front: Front) -> None:
    text = await send(front, response_format="text")
    assert text.text == "Good morning. Good morning.\n"
    assert text.headers["content-type"].startswith("text/plain")
    srt = (await send(front, response_format="srt")).text
    assert srt.startswith("1\n00:00:00,000 --> 00:00:01,200\nGood morning.\n\n2\n00:00:01,800")
    vtt = (await send(front, response_format="vtt")).text
    assert vtt.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.200\nGood morning.\n")


async def test_verbose_json(front: Front) -> None:
    fields: Any = {"response_format": "verbose_json", "timestamp_granularities[]": "segment"}
    body = (await send(front, **fields)).json()
    assert body["duration"] == 4.0
    assert [(s["id"], s["start"], s["end"], s["text"]) for s in body["segments"]] == [
        (0, 0.0, 1.2, "Good morning."),
        (1, 1.8, 4.0, "Good morning."),
    ]


async def test_a_stream(front: Front) -> None:
    answer = await send(front, stream="true")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"transcript.text.delta"}
    assert "".join(event["delta"] for event in deltas) == done["text"]
    assert done["type"] == "transcript.text.done"
    assert done["text"] == "Good morning. Good morning."
    assert done["usage"]["total_tokens"] == 86


@pytest.mark.parametrize("form", ["json", "text", "srt", "vtt", "verbose_json"])
async def test_silence_has_no_text(front: Front, form: str) -> None:
    answer = await send(front, SILENCE, response_format=form)
    assert answer.status_code == 200
    empty = {"text": "\n", "srt": "", "vtt": "WEBVTT\n"}
    if form in empty:
        assert answer.text == empty[form]
    else:
        assert answer.json()["text"] == ""
    assert not front.engines.calls


async def test_silence_in_a_stream(front: Front) -> None:
    answer = await send(front, SILENCE, stream="true")
    [done] = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line]
    assert (done["type"], done["text"]) == ("transcript.text.done", "")


async def test_a_text_that_was_cut_says_so(tmp_path: Path) -> None:
    events = [*WRITTEN[:-1], Answered("length", 40, 10, 3, 0, CODES[:0])]
    answer = await send(Front(tmp_path / "store", events))
    assert answer.headers["x-finish-reason"] == "length"


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"model": None}, 400, "model"),
    ({"model": "gpt"}, 404, "model"),
    ({"model": "demo"}, 400, "model"),
    ({"model": "dialogue"}, 400, "model"),
    ({"file": None}, 400, "file"),
    ({"file": b""}, 400, "file"),
    ({"file": b"no audio at all"}, 400, "file"),
    ({"file": SPEECH[:30]}, 400, "file"),
    ({"file": wav(np.zeros(0))}, 400, "file"),
    ({"language": "en"}, 400, "language"),
    ({"prompt": "names: Ada"}, 400, "prompt"),
    ({"response_format": "xml"}, 400, "response_format"),
    ({"temperature": "2"}, 400, "temperature"),
    ({"temperature": "nan"}, 400, "temperature"),
    ({"temperature": "warm"}, 400, "temperature"),
    ({"stream": "maybe"}, 400, "stream"),
    ({"stream": "true", "response_format": "srt"}, 400, "stream"),
    ({"timestamp_granularities[]": "segment"}, 400, "timestamp_granularities[]"),
    ({"timestamp_granularities[]": "letter"}, 400, "timestamp_granularities[]"),
    (
        {"timestamp_granularities[]": "word", "response_format": "verbose_json"},
        400,
        "timestamp_granularities[]",
    ),
    ({"chunking_strategy": "manual"}, 400, "chunking_strategy"),
    ({"include[]": "logprobs"}, 400, "include[]"),
    ({"colour": "red"}, 400, "colour"),
]


@pytest.mark.parametrize(
    ("fields", "status", "param"), BAD, ids=[f"{b[2]} {i}" for i, b in enumerate(BAD)]
)
async def test_what_cannot_be_done_is_refused_by_name(
    front: Front, fields: dict[str, Any], status: int, param: str
) -> None:
    answer = await send(front, **fields)
    assert answer.status_code == status, answer.text
    error = error_of(answer)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert not front.engines.calls


async def test_a_missing_ability_is_named(front: Front) -> None:
    for model in ("demo", "bagpiper"):
        error = error_of(await send(front, model=model))
        assert error["code"] == "ability_missing"
        assert "'transcribes'" in error["message"]


async def test_long_recordings_are_refused(tmp_path: Path) -> None:
    answer = await send(Front(tmp_path / "store", WRITTEN, max_audio_seconds=3.5))
    assert answer.status_code == 413
    assert error_of(answer)["param"] == "file"


async def test_no_form_is_refused(front: Front) -> None:
    answer = await front.http.post(URL, json={"model": "opuslm"})
    assert answer.status_code == 400
    assert error_of(answer)["param"] == "file"


async def test_what_replicas_say(tmp_path: Path) -> None:
    refused = Front(tmp_path / "store", (Accepted(1, RATE), Refused(400, "file: long", "file")))
    answer = await send(refused, stream="true")
    assert (answer.status_code, error_of(answer)["param"]) == (400, "file")


async def test_a_later_part_waits_for_room(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        front.engines.events = WRITTEN

    monkeypatch.setattr(patience, "asyncio", SimpleNamespace(sleep=sleep))
    full = (Refused(429, "full", retry_after=3.5),)
    front.engines.events = full
    assert (await send(front)).status_code == 429  # the first can still be told so
    assert waits == []
    front.engines.events = WRITTEN
    answers = front.engines.answer

    def answer(call: Any) -> Any:
        begun = answers(call)
        if not waits:
            front.engines.events = full
        return begun

    monkeypatch.setattr(front.engines, "answer", answer)
    written = await send(front)
    assert written.status_code == 200, written.text
    assert written.json()["text"] == "Good morning. Good morning."
    assert waits == [4]
