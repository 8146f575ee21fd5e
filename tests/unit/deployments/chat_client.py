"""A client of ``/v1/chat/completions``."""

import base64
import json
from typing import Any

import httpx

from tests.unit.deployments.answering_stand_in import Front, tone, wav

URL = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello."}]
AUDIO: dict[str, Any] = {
    "modalities": ["text", "audio"],
    "audio": {"voice": "default", "format": "wav"},
}
CLIP = base64.b64encode(wav(tone(1))).decode()


def heard(data: str = CLIP) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def said_by_assistant(**fields: Any) -> dict[str, Any]:
    return {"messages": [*HELLO, {"role": "assistant", **fields}, *HELLO]}


async def ask(
    front: Front, model: str = "dialogue", headers: Any = None, **fields: Any
) -> httpx.Response:
    body = {"model": model, "messages": HELLO, **fields}
    return await front.http.post(URL, json=body, headers=headers)


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
