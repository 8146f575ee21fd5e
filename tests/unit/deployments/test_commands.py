"""The commands that ask a service, and a service that asks for a key."""

import asyncio
import socket
import threading
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import uvicorn

from demo_voice.client import connect
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
