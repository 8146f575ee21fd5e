"""``speechlm generate``: lines in, records out. The engine itself is tested elsewhere."""

import asyncio
import json
import re
from typing import Any, cast

import numpy as np
import pytest

from deployments.offline import MAX_IN_FLIGHT, Answers, BadLine, RequestLine, parse, wav_name
from engine_adapter.engine import SpeechEngine
from engine_adapter.request import GenerationError, RequestError, Result, SpeechRequest

EVERYTHING: dict[str, Any] = {
    "id": 5,
    "prompt_ids": [1, [2, 0, 0]],
    "voice": "rms",
    "output": "text+audio",
    "cfg_scale": 2,
    "unconditional_ids": [1],
    "seed": 3,
    "temperature": 0.5,
    "top_k": 4,
    "top_p": 0.9,
    "max_frames": 6,
    "max_text_tokens": 7,
}


def line(data: Any) -> bytes:
    return json.dumps(data).encode() + b"\n"


def test_every_field_reaches_the_engine() -> None:
    parsed = parse(line(EVERYTHING), 1)
    assert isinstance(parsed, RequestLine)
    fields = {key: value for key, value in EVERYTHING.items() if key != "id"}
    assert parsed.request() == SpeechRequest(**fields)


def test_what_a_line_does_not_say_is_left_to_the_model() -> None:
    parsed = parse(line({"id": 5, "text": "x"}), 1)
    assert isinstance(parsed, RequestLine)
    assert parsed.request() == SpeechRequest(text="x")
    assert parsed.request().cfg_scale is None


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"text": "x"}, "id"),
        ({"id": "a", "txt": "x"}, "txt"),
        ({"id": "a", "text": 3}, "text"),
        ({"id": "a", "prompt_ids": 3}, "prompt_ids"),
        ({"id": "a", "prompt_ids": [1, "x"]}, "prompt_ids[1]"),
        ({"id": "a", "prompt_ids": "12"}, "prompt_ids"),
        ({"id": "a", "text": "x", "output": "video"}, "output"),
        ({"id": "a", "text": "x", "voice": 1}, "voice"),
        ({"id": "a", "text": "x", "cfg_scale": "2"}, "cfg_scale"),
        ({"id": "a", "text": "x", "cfg_scale": float("nan")}, "cfg_scale"),
        ({"id": "a", "text": "x", "seed": 1.5}, "seed"),
        ({"id": "a", "text": "x", "max_frames": True}, "max_frames"),
        ({"id": True, "text": "x"}, "id"),
    ],
)
def test_a_bad_field_is_named(data: dict[str, Any], param: str) -> None:
    parsed = parse(line(data), 1)
    assert isinstance(parsed, BadLine)
    assert parsed.id == (None if param == "id" else "a")
    assert parsed.error.startswith(f"{param}: ")


@pytest.mark.parametrize("content", [b"{", b"[1]\n", b"\xff\xff\n", b"null", b"[" * 100_000])
def test_a_line_that_is_no_object_is_named_by_its_number(content: bytes) -> None:
    parsed = parse(content, 17)
    assert isinstance(parsed, BadLine)
    assert parsed.id is None
    assert parsed.error.startswith("line 17: ")


@pytest.mark.parametrize("name", ["a", "a.b-c_d", "0" * 100, 12])
def test_a_plain_id_is_its_own_file_name(name: str | int) -> None:
    assert wav_name(name) == f"{name}.wav"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "/etc/x", ".hidden", "a/b", "a\0b", "é", "\ud800", "x" * 999]
)
def test_other_ids_become_plain_and_distinct_names(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}\.wav", wav_name(name))
    assert wav_name(name) != wav_name(f"{name}?")


class StandIn:
    """Answers in the reverse of the order in which it was asked."""

    def __init__(self) -> None:
        self.most_at_once = 0
        self._live = 0

    def prepare(self, request: SpeechRequest) -> SpeechRequest:
        if request.text == "":
            raise RequestError("text", "is empty")
        return request

    async def generate(self, request: SpeechRequest) -> Result:
        self._live += 1
        self.most_at_once = max(self.most_at_once, self._live)
        await asyncio.sleep(0.02 / (1 + (request.seed or 0)))
        self._live -= 1
        if request.seed == 3:
            raise GenerationError("the cache is too small")
        ids = np.ones((2, 3), np.int32)
        return Result(ids, ids[:1], "", "stop", request.seed or 0)


async def answer(engine: StandIn, lines: list[bytes]) -> list[dict[str, Any]]:
    answers = Answers(cast(SpeechEngine, engine), None, None)
    return [record async for record in answers.answer(lines)]


async def test_records_come_in_the_order_of_the_lines() -> None:
    lines = [line({"id": f"r{i}", "text": "x", "seed": i}) for i in range(6)]
    lines[2:2] = [b"\n", b"oops\n", line({"id": "empty", "text": ""}), lines[0]]
    records = await answer(StandIn(), lines)
    assert [r["id"] for r in records] == ["r0", "r1", None, "empty", "r0", "r2", "r3", "r4", "r5"]
    assert [r["error"] and r["error"].split(":")[0] for r in records] == [
        *(None, None, "line 4", "text", "id", None, "the cache is too small", None, None)
    ]
    assert records[0] == {
        "id": "r0",
        "codes": [[1, 1, 1]],
        "raw_ids": [[1, 1, 1], [1, 1, 1]],
        "text": "",
        "finish_reason": "stop",
        "error": None,
        "seed": 0,
        "preemptions": 0,
    }
    assert all(set(r) == set(records[0]) for r in records)
    assert {r["finish_reason"] for r in records if r["error"]} == {"error"}


async def test_what_is_in_flight_is_bounded() -> None:
    engine = StandIn()
    count = MAX_IN_FLIGHT + 100
    records = await answer(engine, [line({"id": i, "text": "x", "seed": 99}) for i in range(count)])
    assert [r["id"] for r in records] == list(range(count))
    assert engine.most_at_once == MAX_IN_FLIGHT
