"""The commands that ask a service, and a service that asks for a key."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import httpx
import pytest
import uvicorn

from bench.speaking import Answer, speaker
from demo_voice import judging
from demo_voice.client import Request, connect
from demo_voice.figures import Playback
from deployments.audio.formats import AudioFormat
from deployments.cli import main
from deployments.commands import CommandError, eval
from deployments.front_end.ingress import create_app
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import ENVIRONMENT, KEY, InProcess
from tests.unit.deployments.speaking_stand_in import CARD, StandIn

SHIPPED = Path(__file__).parents[3] / "serve_config.yaml"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The address of a front end that asks for a key."""
    settings = ServiceSettings(store=str(tmp_path / "store"))
    card = replace(CARD, abilities=("speaks",))
    catalog = Catalog([ServedModel(card, StandIn())], settings, created=1)
    guards = Guards.begin(GuardSettings(), settings, InProcess(), ENVIRONMENT)
    server = uvicorn.Server(uvicorn.Config(create_app(catalog, guards), port=0, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_commands_send_the_key_of_the_environment(
    service: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> None:
        options = Namespace(url=service, model=None, manifest=tmp_path / "none", out=tmp_path)
        assert await eval._ask(options, []) == ("demo", [])
        async with connect(service) as client:
            assert (await client.card("demo")).id == "demo"

    monkeypatch.delenv("SPEECHLM_API_KEY", raising=False)
    with pytest.raises(CommandError, match="401: an API key is needed"):
        asyncio.run(ask())
    monkeypatch.setenv("SPEECHLM_API_KEY", f"{KEY}\n")
    asyncio.run(ask())
    for name in get_args(AudioFormat):
        output = tmp_path / f"said.{name}"
        url = f"{service}/v1/" if name == "mp3" else service  # as OpenAI's clients call it
        assert main(["say", "Hello.", "-o", str(output), "--url", url]) == 0
        assert capsys.readouterr().out == f"{output}: seed 7, finished by stop\n"
        assert output.stat().st_size > 100


def test_measurements_send_the_key_of_the_environment(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def speak() -> Answer:
        async with speaker(service) as client:
            return await client.speak("Hi", None, began=time.perf_counter())

    async def stream() -> Playback:
        async with connect(service) as client:
            return await client.stream(Request("demo", CARD.voices[0], "Hello.", 1.0, seed=1))

    monkeypatch.delenv("SPEECHLM_API_KEY", raising=False)
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        asyncio.run(speak())
    monkeypatch.setenv("SPEECHLM_API_KEY", KEY)
    answer = asyncio.run(speak())
    assert answer.error is None
    assert answer.playback is not None
    assert answer.playback.audio_seconds == asyncio.run(stream()).audio_seconds == 0.05


@pytest.mark.parametrize("key", ["bad \N{LATIN SMALL LETTER U WITH DIAERESIS}", "a b", "a\nb"])
@pytest.mark.parametrize("command", ["say", "eval"])
def test_a_key_that_can_be_none_is_named_by_its_variable_and_not_quoted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    key: str,
) -> None:
    monkeypatch.setenv("SPEECHLM_API_KEY", key)
    monkeypatch.setattr(judging, "PACKAGES", ())
    (tmp_path / "m.jsonl").write_text('{"id": 1, "text": "Hi."}')
    arguments = {
        "say": ["say", "Hi.", "-o", str(tmp_path / "a.wav")],
        "eval": ["eval", "--manifest", str(tmp_path / "m.jsonl"), "--out", str(tmp_path / "out")],
    }
    assert main(arguments[command]) == 1
    error = capsys.readouterr().err
    assert error.startswith("speechlm: SPEECHLM_API_KEY: is no API key")
    assert error.count("\n") == 1
    assert key not in error
    assert not (tmp_path / "out").exists()


def test_eval_looks_at_its_manifest_first_and_writes_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "PACKAGES", ("no-such-judge",))
    manifest, out = tmp_path / "m.jsonl", tmp_path / "out"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        command = ["eval", "--manifest", str(manifest), "--out", str(out), "--url", url]
        assert main(command) == 1
        said = f"speechlm: {manifest}: No such file or directory\n"
        assert capsys.readouterr().err == said
        manifest.write_text('{"id": 1, "text": "Hi."}')
        assert main(command) == 1
        assert "no-such-judge is missing; in the project" in (error := capsys.readouterr().err)
        assert "requirements/setup demo-voice" in error
        monkeypatch.setattr(judging, "PACKAGES", ())
        assert main(command) == 1
        assert f"nothing listens at {url}" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--port", "0"], "http_options.port: must be 1 to 65535, not 0"),
        (["--port", "-1"], "http_options.port: must be 1 to 65535, not -1"),
        (["--host", ""], "http_options.host: is empty"),
    ],
)
def test_serve_takes_no_address_for_another(option: list[str], message: str) -> None:
    command = [sys.executable, "-m", "deployments.cli", "serve", str(SHIPPED), *option]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"speechlm: {message}\n")
