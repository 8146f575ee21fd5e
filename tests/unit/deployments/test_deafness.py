"""A model directory that cannot make codes of audio: what needs them is not listed, and refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import save_file

from deployments.front_end.ingress import create_app
from deployments.models.audio import ModelAudio
from deployments.models.card import ModelCard
from deployments.models.catalog import Catalog, ServedModel
from deployments.settings import ModelSettings, ServiceSettings
from deployments.stores.voice_store import StoredVoice
from engine_adapter.checkpoint import CheckpointError
from engine_adapter.families import FAMILIES
from engine_adapter.missing_parts import missing_parts
from engine_adapter.tokenizer import SpeechTokenizer
from tests.unit.deployments.answering_stand_in import SPOKEN, StandIn, tone, wav
from tests.unit.deployments.stand_in import error_of

NO_ENCODER = "codec/: its weights have no encoder"
NO_SSL = "ssl/: config.json is missing"


def model_directory(directory: Path, *, encoder: bool, ssl: bool) -> Path:
    codec, units, tokenizer = (directory / name for name in ("codec", "ssl", "tokenizer"))
    for folder in (codec, *([units] if ssl else []), tokenizer):
        folder.mkdir()
    (tokenizer / "tokenizer.json").touch()
    (codec / "config.json").write_text(json.dumps({"model_type": "dac", "sampling_rate": 16000}))
    tensors = {"decoder.a": np.zeros(1)} | ({"encoder.a": np.zeros(1)} if encoder else {})
    save_file(tensors, codec / "model.safetensors")
    if ssl:
        (units / "quantizer.json").touch()
        for name in ("centroids.safetensors", "model.safetensors"):
            save_file({"a": np.zeros(1)}, units / name)
        (units / "config.json").write_text('{"model_type": "hubert"}')
    return directory


def card(family: str, directory: Path) -> ModelCard:
    settings = ModelSettings(id=family, path=str(directory))
    return ModelCard.of(settings, FAMILIES[family], ModelAudio.of(directory), directory)


@pytest.mark.parametrize(
    ("encoder", "ssl", "reason"),
    [(True, True, None), (False, True, NO_ENCODER), (True, False, NO_SSL)],
)
@pytest.mark.parametrize(
    ("family", "rest"), [("opuslm", ("speaks",)), ("opuslm-dialogue", ("speaks", "converses"))]
)
def test_what_a_model_lacks_costs_the_abilities_that_need_it(
    tmp_path: Path,
    family: str,
    rest: tuple[str, ...],
    encoder: bool,
    ssl: bool,
    reason: str | None,
) -> None:
    spec = FAMILIES[family]
    found = card(family, model_directory(tmp_path, encoder=encoder, ssl=ssl))
    assert found.abilities == (spec.abilities if reason is None else rest)
    assert found.deafness == reason
    parts = [part.path for part in missing_parts(tmp_path, spec)]
    assert parts == ([] if reason is None else [reason.split(": ")[0]])


def test_a_family_that_takes_no_audio_lacks_nothing(tmp_path: Path) -> None:
    demo = card("demo", model_directory(tmp_path, encoder=False, ssl=False))
    assert (demo.abilities, demo.deafness) == (("speaks",), None)
    assert missing_parts(tmp_path, FAMILIES["demo"]) == []


def test_what_costs_a_model_everything(tmp_path: Path) -> None:
    directory = model_directory(tmp_path, encoder=False, ssl=False)
    (directory / "tokenizer" / "tokenizer.json").unlink()
    silent = replace(FAMILIES["demo"], text=None)
    for spec, path in ((FAMILIES["demo"], "tokenizer/tokenizer.json"), (silent, "speech.json")):
        [part] = missing_parts(directory, spec)
        assert part.path.startswith(path)
        assert part.cost == "no texts, in or out: it cannot be served"
        with pytest.raises(CheckpointError):
            SpeechTokenizer(directory, spec)


@pytest.fixture
def front(tmp_path: Path) -> tuple[Catalog, httpx.AsyncClient]:
    """Two models without an encoder, behind a front end."""
    (tmp_path / "model").mkdir()
    directory = model_directory(tmp_path / "model", encoder=False, ssl=True)
    engines = StandIn(SPOKEN)
    models = [
        ServedModel(card(family, directory), engines, engines)
        for family in ("opuslm", "opuslm-dialogue")
    ]
    catalog = Catalog(models, ServiceSettings(store=str(tmp_path / "store.sqlite3")), created=1)
    transport = httpx.ASGITransport(create_app(catalog))
    return catalog, httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_it_is_not_listed_and_refused_by_name_and_reason(
    front: tuple[Catalog, httpx.AsyncClient],
) -> None:
    catalog, http = front
    listed = (await http.get("/v1/models")).json()["data"]
    assert [model["abilities"] for model in listed] == [["speaks"], ["speaks", "converses"]]

    sample = {"audio_sample": ("a.wav", wav(tone(1.0)))}
    catalog.voices.store.add(StoredVoice("ada", 1), wav(tone(1.0)))
    spoken: dict[str, Any] = {"model": "opuslm", "voice": "ada", "input": "Hello."}
    heard = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    message = {"role": "user", "content": [heard]}
    chat = {"model": "opuslm-dialogue", "messages": [message]}
    file = {"file": ("a.wav", wav(tone(1.0)))}
    answers = {
        ("audio_sample", "clones"): await http.post(
            "/v1/audio/voices", data={"name": "eve"}, files=sample
        ),
        ("voice", "clones"): await http.post("/v1/audio/speech", json=spoken),
        ("messages", "understands_audio"): await http.post("/v1/chat/completions", json=chat),
        ("model", "transcribes"): await http.post(
            "/v1/audio/transcriptions", data={"model": "opuslm"}, files=file
        ),
    }
    for (param, ability), answer in answers.items():
        assert answer.status_code == 400, ability
        error = error_of(answer)
        assert (error["param"], error["code"]) == (param, "ability_missing")
        assert repr(ability) in error["message"]
        assert NO_ENCODER in error["message"]
        assert "opuslm" in error["message"]
    [own] = [v for v in (await http.get("/v1/audio/voices")).json()["data"] if v["id"] == "ada"]
    assert own["models"] == []
