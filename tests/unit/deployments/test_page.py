"""The page in Chromium, before a service that answers as each test says."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import socket
import threading
import time
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from selenium import webdriver

from deployments.front_end.errors import error_response
from deployments.routes import page as page_route
from tests.browser import Page, chromium

RATE = 24_000
CARDS = [
    {"id": "one", "voices": ["ann", "bob"], "cfg_scale": 1.5},
    {
        "id": "two",
        "voices": ["bob", "cyd"],
        "cfg_scale": 1,
        "abilities": ["speaks", "takes_instructions"],
    },
    {"id": "ears", "voices": [], "cfg_scale": 1, "abilities": ["transcribes"]},
]

Events = Callable[[], AsyncIterator[bytes]]


class Script:
    """What the service answers, and what it was asked."""

    def __init__(self) -> None:
        self.models: Callable[[], Response] = lambda: JSONResponse({"data": CARDS})
        self.ready: Callable[[], Response] = lambda: JSONResponse({"status": "ready"})
        self.refusal: Callable[[str | None], Response | None] = lambda key: None
        self.events: Events = lambda: spoken(tone(0.3))
        self.asked: list[str] = []

    def app(self) -> FastAPI:
        app = FastAPI()
        app.include_router(page_route.router())

        @app.get("/v1/models")
        def models(request: Request) -> Response:
            return self.refusal(request.headers.get("authorization")) or self.models()

        @app.get("/ready")
        def ready() -> Response:
            return self.ready()

        @app.post("/v1/audio/speech")
        async def speech(request: Request) -> Response:
            self.asked.append((await request.body()).decode())
            refused = self.refusal(request.headers.get("authorization"))
            headers = {"x-seed": "7", "x-sample-rate": str(RATE)}
            return refused or StreamingResponse(
                self.events(), media_type="text/event-stream", headers=headers
            )

        return app


def tone(seconds: float) -> bytes:
    times = np.arange(round(seconds * RATE)) / RATE
    return (20_000 * np.sin(2 * np.pi * 441 * times)).astype("<i2").tobytes()


def event(**data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def delta(pcm: bytes) -> bytes:
    return event(type="speech.audio.delta", audio=base64.b64encode(pcm).decode())


DONE = event(type="speech.audio.done", usage={}, finish_reason="stop")


async def spoken(*pieces: bytes, end: bytes = DONE) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield delta(piece)
    yield end


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def chrome(downloads: Path) -> Iterator[webdriver.Chrome]:
    with chromium(downloads) as running:
        yield running


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def url(script: Script) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(script.app(), log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{port}/"
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.fixture
def page(chrome: webdriver.Chrome, url: str) -> Page:
    return Page(chrome, url)


def downloaded(page: Page, downloads: Path) -> bytes:
    """The samples of the WAV file that the page makes."""
    page.click("download")
    path = downloads / "speech-7.wav"
    page.wait(path.exists, 10)
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        samples = file.readframes(file.getnframes())
    path.unlink()
    return samples


def test_it_is_one_small_document() -> None:
    document = page_route.compose()
    assert len(document.encode()) < 60_000
    assert not re.search(r"/\* \w+\.(css|js) \*/", document)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", document)


def test_pieces_may_be_cut_anywhere(page: Page, script: Script, downloads: Path) -> None:
    pcm = tone(0.5)
    cuts = [0, 1, 2, 7, 1000, 1003, 9001, len(pcm)]
    pieces = [pcm[a:b] for a, b in itertools.pairwise(cuts)]

    async def events() -> AsyncIterator[bytes]:
        sent = b"".join(map(delta, pieces)) + DONE
        for start in range(0, len(sent), 997):
            yield sent[start : start + 997]
            await asyncio.sleep(0.001)

    script.events = events
    page.wait_ready()
    page.say()
    assert page.figure("received") == page.figure("played") == len(pcm) // 2
    assert 0.5 < page.figure("peak") < 0.7
    assert downloaded(page, downloads) == pcm
    assert page.text("duration") == "0.50 s"
    assert page.text("finish") == "stop"
    assert page.text("seed-used") == "7"


def test_it_can_be_played_again(page: Page, script: Script) -> None:
    async def events() -> AsyncIterator[bytes]:
        yield delta(tone(5))  # longer than a busy browser takes to answer
        yield DONE

    script.events = events
    page.wait_ready()
    page.say()
    page.click("again")
    page.wait_state("replaying")
    page.wait_state("done")
    assert page.figure("played") == page.figure("received") > 0
    assert len(script.asked) == 1


def test_a_gap_is_counted_and_loses_nothing(page: Page, script: Script) -> None:
    async def events() -> AsyncIterator[bytes]:
        yield delta(tone(0.3))
        await asyncio.sleep(1.5)
        yield delta(tone(0.3))
        yield DONE

    script.events = events
    page.wait_ready()
    page.say()
    assert page.text("gaps") == "1"
    assert page.figure("played") == page.figure("received") == 2 * 0.3 * RATE


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (None, "The connection broke before the audio was complete."),
        (b"", "The connection ended before the audio was complete."),
        (event(type="error", error={"message": "out of words"}), "out of words"),
    ],
)
def test_an_answer_that_breaks_off_is_not_taken_for_whole(
    page: Page, script: Script, downloads: Path, end: bytes | None, message: str
) -> None:
    heard = threading.Event()

    async def events() -> AsyncIterator[bytes]:
        yield delta(tone(0.3))
        await asyncio.to_thread(heard.wait, 60)
        if end is None:
            raise ConnectionError
        yield end

    script.events = events
    page.wait_ready()
    page.click("speak")
    page.wait_state("speaking")
    heard.set()
    page.wait_state("failed")
    assert page.text("problem") == message
    assert page.text("finish") == "broken"
    assert downloaded(page, downloads) == tone(0.3)


def test_it_waits_for_the_service(page: Page, script: Script) -> None:
    script.ready = lambda: error_response(503, "not ready: one")
    page.chrome.refresh()
    page.wait(lambda: page.text("readiness") == "not ready: one; trying again")
    script.models = lambda: JSONResponse({"data": []})
    page.wait(lambda: "no model" in page.text("readiness"))
    page.click("speak")
    assert page.text("problem") == "There is no model to speak with yet."
    script.models, script.ready = Script().models, Script().ready
    page.wait_ready()
    assert page.text("problem") == ""


def test_a_key_is_asked_for_and_kept_for_the_session_only(page: Page, script: Script) -> None:
    refusal = error_response(401, "an API key is needed", code="invalid_api_key")
    script.refusal = lambda key: None if key == "Bearer sk-right" else refusal
    page.chrome.refresh()
    page.wait(lambda: page.text("readiness") == "An API key is needed: see Settings")
    page.click("speak")
    assert page.focused() == "key"
    assert page.text("key-error") == "an API key is needed"
    assert page.text("problem") == ""
    page.fill(key="sk-wrong\t")
    page.wait(lambda: page.element("key").get_attribute("aria-invalid") == "true")
    page.fill(key="sk-right\t")
    page.wait_ready()
    assert page.element("key").get_attribute("aria-invalid") is None
    assert page.text("key-error") == ""
    page.say()
    assert "sk-right" not in page.text("curl")
    assert '-H "authorization: Bearer $SPEECHLM_API_KEY"' in page.text("curl")
    kept = page.chrome.execute_script(
        "return [localStorage.length, document.cookie, Object.values(sessionStorage)]"
    )
    assert kept == [0, "", ["sk-right"]]


def test_numbers_are_sent_as_they_were_written(page: Page, script: Script) -> None:
    page.wait_ready()
    page.say(text='He said "no".', seed="009223372036854775807", guidance=".5", temperature="")
    [asked] = script.asked
    assert '"seed": 9223372036854775807' in asked
    assert json.loads(asked) == {
        "model": "one",
        "voice": "ann",
        "input": 'He said "no".',
        "cfg_scale": 0.5,
        "seed": 2**63 - 1,
        "response_format": "pcm",
        "stream_format": "sse",
    }


def test_what_is_no_number_is_said_at_its_field(page: Page, script: Script) -> None:
    page.wait_ready()
    for field, value in (("seed", "seven"), ("temperature", "1e")):
        page.fill(**{field: value})
        page.click("speak")
        assert page.focused() == field
        assert "not a" in page.text(f"{field}-error")
        page.element(field).clear()
    assert script.asked == []


def test_a_fault_of_no_field_is_an_alert(page: Page, script: Script) -> None:
    script.refusal = lambda key: error_response(429, "too many requests") if script.asked else None
    page.wait_ready()
    page.click("speak")
    page.wait_state("failed")
    assert page.text("problem") == "too many requests"
    assert page.element("problem").get_attribute("role") == "alert"


def test_another_model_brings_its_voices_and_its_guidance(page: Page, script: Script) -> None:
    page.wait_ready()
    assert page.options("model") == ["one", "two"]  # the third does not speak
    page.fill(voice="bob")
    assert page.element("guidance").get_attribute("value") == "1.5"
    page.fill(model="two")
    assert page.options("voice") == ["bob", "cyd"]
    assert page.element("voice").get_attribute("value") == "bob"
    assert page.element("guidance").get_attribute("value") == "1"
    page.say(voice="cyd")
    assert {"model": "two", "voice": "cyd"}.items() <= json.loads(script.asked[-1]).items()


def test_speed_and_instructions_are_sent_where_the_model_takes_them(
    page: Page, script: Script
) -> None:
    page.wait_ready()
    page.fill(speed="1.25")
    assert not page.element("instructions").is_displayed()
    page.fill(model="two")
    page.say(instructions="Whisper.")
    page.say(model="one")
    first, second = map(json.loads, script.asked)
    assert (first["speed"], first["instructions"]) == (1.25, "Whisper.")
    assert second["speed"] == 1.25
    assert "instructions" not in second


def test_a_second_click_begins_anew(page: Page, script: Script) -> None:
    left = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield delta(tone(0.1))
                await asyncio.sleep(0.05)
        finally:
            left.append(time.monotonic())

    script.events = endless
    page.wait_ready()
    page.click("speak")
    page.wait_state("speaking")
    script.events = Script().events
    page.click("speak")
    page.wait_state("done")
    assert len(script.asked) == 2
    assert len(left) == 1
    assert page.figure("received") == page.figure("played") == 0.3 * RATE
