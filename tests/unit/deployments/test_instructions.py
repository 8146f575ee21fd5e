"""``instructions``: sent on to models that take them, refused by name for others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from deployments.audio.wav import file as wav_file
from deployments.front_end.ingress import create_app
from deployments.models.audio import ModelAudio
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ServiceSettings
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.speaking_stand_in import CARD, JSON, StandIn, body, client
from tests.unit.deployments.stand_in import error_of

ABLE = replace(
    CARD, abilities=("speaks", "takes_instructions"), audio=ModelAudio(16_000, "e", 320, 320)
)
WHISPER = "In a whisper, and slowly."


async def test_they_reach_the_engine_with_every_part_of_a_long_text() -> None:
    engines = StandIn()
    long = {"input": "Good morning. " * 9, "instructions": WHISPER}
    async with client(engines, card=replace(ABLE, utterance_characters=30)) as http:
        assert (await http.post("/v1/audio/speech", json=body(**long))).status_code == 200
        listed = (await http.get("/v1/models")).json()["data"][0]
    [call] = engines.calls
    assert len(call.utterances) > 1
    assert call.instructions == WHISPER
    assert "takes_instructions" in listed["abilities"]


@pytest.mark.parametrize("nothing", [{}, {"instructions": None}, {"instructions": " \n"}])
@pytest.mark.parametrize("card", [CARD, ABLE])
async def test_blank_ones_say_nothing(nothing: dict[str, Any], card: Any) -> None:
    engines = StandIn()
    async with client(engines, card=card) as http:
        assert (await http.post("/v1/audio/speech", json=body(**nothing))).status_code == 200
    assert engines.calls[0].instructions is None


async def test_a_model_that_takes_none_refuses_them_by_name() -> None:
    engines = StandIn()
    async with client(engines) as http:
        refused = await http.post("/v1/audio/speech", json=body(instructions=WHISPER))
    assert refused.status_code == 400
    error = error_of(refused)
    assert (error["param"], error["code"]) == ("instructions", "ability_missing")
    assert "demo lacks the ability 'takes_instructions'" in error["message"]
    assert not engines.calls


@pytest.mark.parametrize("bad", ["x" * 4097, "half of a \ud800", 3, ["whisper"]])
async def test_malformed_ones_are_refused(bad: Any) -> None:
    engines = StandIn()
    async with client(engines, card=ABLE) as http:
        content = json.dumps(body(instructions=bad))
        refused = await http.post("/v1/audio/speech", content=content, headers=JSON)
    assert refused.status_code == 400
    assert error_of(refused)["param"] == "instructions"
    assert not engines.calls


async def test_with_a_recorded_voice_there_is_no_place_for_them(tmp_path: Path) -> None:
    engines = StandIn()
    card = replace(ABLE, abilities=(*ABLE.abilities, "clones"))
    service = ServiceSettings(store=str(tmp_path / "store.sqlite3"))
    catalog = Catalog([ServedModel(card, engines, engines)], service, created=1)  # type: ignore[arg-type]
    voice = StoredVoice("ada", 1)
    catalog.voices.store.add(voice, wav_file(16_000, b"\0" * 32_000))
    catalog.voices.store.keep_codes(voice, "e", np.zeros((3, 9), np.int32))
    transport = httpx.ASGITransport(create_app(catalog))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        asked = body(voice="ada", instructions=WHISPER)
        refused = await http.post("/v1/audio/speech", json=asked)
        assert refused.status_code == 400
        assert error_of(refused)["param"] == "instructions"
        assert (await http.post("/v1/audio/speech", json=body(voice="ada"))).status_code == 200
