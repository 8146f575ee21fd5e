"""Asks a service for every item, and keeps the answers, which are not asked for again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from deployments import whole_file
from deployments.client import error_message
from deployments.evaluation.manifest import Item

CONCURRENT = 4  # requests


@dataclass(frozen=True)
class Answer:
    """What came of an item.

    Attributes:
        heard: the transcript that the model wrote; None for speech.
        audio: the name of the WAV file in the folder of answers; None where there is none.
        finish: why the model ended, ``stop`` or ``length``; None where the service did not say.
        error: why there is no answer.
    """

    heard: str | None = None
    audio: str | None = None
    finish: str | None = None
    error: str | None = None


async def ask(
    client: httpx.AsyncClient,
    model: str,
    voice: str,
    items: Sequence[Item],
    recordings: Path,
    folder: Path,
    done: Callable[[], object] = lambda: None,
) -> list[Answer]:
    """An answer for every item, in order.

    Args:
        voice: of speech items that name none.
        recordings: the folder that their ``audio`` is relative to.
        folder: of the answers; those of an earlier call are taken from it. Errors are not kept.
        done: called when an item has its answer.

    Raises:
        httpx.ConnectError: nothing listens there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    turns = asyncio.Semaphore(CONCURRENT)

    async def one(item: Item) -> Answer:
        async with turns:
            answer = await _answer(client, model, voice, item, recordings, folder)
        done()
        return answer

    # Not a TaskGroup, which would wrap the error of a request in a group.
    return await asyncio.gather(*map(one, items))


async def _answer(
    client: httpx.AsyncClient,
    model: str,
    voice: str,
    item: Item,
    recordings: Path,
    folder: Path,
) -> Answer:
    recording = b""
    if item.audio is not None:
        try:
            recording = (recordings / item.audio).read_bytes()
        except OSError as error:
            return Answer(error=f"{item.audio}: {error.strerror}")
    key = item.key(model, recording)
    record = folder / f"{key}.json"
    if record.exists():
        return Answer(**json.loads(record.read_text()))
    try:
        if item.task == "speech":
            answer = await _speak(client, model, item, voice, folder / f"{key}.wav")
        else:
            answer = await _transcribe(client, model, item, recording)
    except httpx.ConnectError:
        raise
    except httpx.HTTPError as error:
        return Answer(error=f"{type(error).__name__}: {error}")
    if answer.error is None:
        whole_file.write(
            record, json.dumps(asdict(answer))
        )  # last: it says that the audio is whole
    return answer


async def _speak(
    client: httpx.AsyncClient, model: str, item: Item, voice: str, file: Path
) -> Answer:
    body = {
        "model": model,
        "voice": item.voice or voice,
        "input": item.text,
        "response_format": "wav",
        "stream": False,
        "seed": item.seed,
    }
    if item.cfg_scale is not None:
        body["cfg_scale"] = item.cfg_scale
    response = await client.post("/v1/audio/speech", json=body)
    if response.is_error:
        return Answer(error=_reason(response))
    file.write_bytes(response.content)
    return Answer(audio=file.name, finish=response.headers.get("x-finish-reason"))


async def _transcribe(
    client: httpx.AsyncClient, model: str, item: Item, recording: bytes
) -> Answer:
    assert item.audio is not None
    form = {"model": model, "temperature": "0"}
    files = {"file": (Path(item.audio).name, recording)}
    response = await client.post("/v1/audio/transcriptions", data=form, files=files)
    if response.is_error:
        return Answer(error=_reason(response))
    return Answer(heard=response.json()["text"], finish=response.headers.get("x-finish-reason"))


def _reason(response: httpx.Response) -> str:
    return f"{response.status_code}: {error_message(response, response.text.strip()[:200])}"
