"""What ``/v1/audio/voices`` answers, with a stand-in for the engine replicas."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from deployments.front_end.ingress import create_app
from deployments.models.catalog import Catalog
from tests.unit.deployments.answering_stand_in import CODES, RATE, Front, tone, wav
from tests.unit.deployments.stand_in import error_of
from vocoder_service.busy import EncoderBusy

URL = "/v1/audio/voices"
RECORDING = wav(tone(2))


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(tmp_path / "store", max_voice_seconds=5, max_voice_bytes=10**6, max_voices=2)


async def add(
    front: Front, name: str | None = "ada", file: bytes | None = RECORDING, **fields: Any
) -> httpx.Response:
    field = fields.pop("field", "audio_sample")
    data = fields if name is None else {"name": name, **fields}
    files = {} if file is None else {field: ("a.wav", file)}
    return await front.http.post(URL, data=data, files=files)


async def test_a_voice_comes_and_goes(front: Front) -> None:
    made = await add(front, consent="cons_1")
    assert made.status_code == 200, made.text
    entry = made.json()
    assert (entry["id"], entry["object"], entry["built_in"]) == ("ada", "audio.voice", False)
    assert entry["models"] == ["opuslm", "dialogue"]
    assert len(front.engines.clips) == 2  # one for each encoder
    assert front.engines.clips[0].shape == (2 * RATE,)

    listed = (await front.http.get(URL)).json()
    assert listed["object"] == "list"
    voices = {voice["name"]: voice for voice in listed["data"]}
    assert list(voices) == ["rms", "slt", "default", "ada"]
    assert voices["rms"]["models"] == ["demo"]
    assert voices["rms"]["built_in"]
    assert voices["ada"] == entry

    stored = front.catalog.voices.store.find("ada")
    assert stored is not None
    assert stored.consent == "cons_1"
    kept = front.catalog.voices.store.codes(stored, "encoder-dialogue")
    assert kept is not None
    assert np.array_equal(kept, CODES)

    assert (await front.http.delete(f"{URL}/ada")).status_code == 204
    gone = await front.http.delete(f"{URL}/ada")
    assert gone.status_code == 404
    assert error_of(gone)["code"] == "voice_not_found"


async def test_the_other_name_of_the_file(front: Front) -> None:
    assert (await add(front, field="file")).status_code == 200


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"name": None}, 400, "name"),
    ({"name": ""}, 400, "name"),
    ({"name": "a/b"}, 400, "name"),
    ({"name": "../x"}, 400, "name"),
    ({"name": "a b"}, 400, "name"),
    ({"name": "x" * 65}, 400, "name"),
    ({"name": "\u00e9"}, 400, "name"),
    ({"name": "rms"}, 400, "name"),
    ({"name": "default"}, 400, "name"),
    ({"file": None}, 400, "audio_sample"),
    ({"file": b""}, 400, "audio_sample"),
    ({"file": b"no audio"}, 400, "audio_sample"),
    ({"file": wav(tone(0.1))}, 400, "audio_sample"),
    ({"file": wav(tone(6))}, 413, "audio_sample"),
    ({"file": bytes(10**6 + 1)}, 413, "audio_sample"),
    ({"file": b"no audio", "field": "file"}, 400, "file"),
    ({"consent": "x" * 513}, 400, "consent"),
    ({"colour": "red"}, 400, "colour"),
]


@pytest.mark.parametrize(
    ("fields", "status", "param"), BAD, ids=[f"{b[2]} {i}" for i, b in enumerate(BAD)]
)
async def test_what_cannot_be_stored_is_refused_by_name(
    front: Front, fields: dict[str, Any], status: int, param: str
) -> None:
    answer = await add(front, **fields)
    assert answer.status_code == status, answer.text
    error = error_of(answer)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert front.catalog.voices.store.voices() == []


async def test_names_are_taken_once_and_their_number_is_limited(front: Front) -> None:
    assert (await add(front)).status_code == 200
    assert "there is a voice" in error_of(await add(front))["message"]
    assert (await add(front, "b")).status_code == 200
    full = await add(front, "c")
    assert (full.status_code, error_of(full)["param"]) == (400, "name")


async def test_own_voices_stay(front: Front) -> None:
    answer = await front.http.delete(f"{URL}/rms")
    assert (answer.status_code, error_of(answer)["param"]) == (400, "name")


async def test_without_a_model_that_clones_nothing_is_stored(front: Front) -> None:
    demo = front.catalog.model("demo")
    app = create_app(Catalog([demo], front.catalog.service, 1))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as http:
        answer = await http.post(
            URL, data={"name": "ada"}, files={"audio_sample": ("a.wav", RECORDING)}
        )
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "ability_missing"
    assert "'clones'" in error_of(answer)["message"]


async def test_an_encoder_without_room_is_429(front: Front) -> None:
    front.engines.encoding_fails = EncoderBusy("64 clips are waiting")
    answer = await add(front)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert front.catalog.voices.store.voices() == []
