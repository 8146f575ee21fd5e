"""What ``/v1/audio/voices`` answers, with a stand-in for the engine replicas."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from deployments.calls import health
from deployments.front_end.ingress import create_app
from deployments.models.catalog import Catalog
from deployments.stores.voice_store import StoredVoice
from tests.unit.deployments.answering_stand_in import CODES, RATE, Front, tone, wav
from tests.unit.deployments.stand_in import error_of
from vocoder_service.busy import EncoderBusy

URL = "/v1/audio/voices"
RECORDING = wav(tone(2))


@pytest.fixture
def front(tmp_path: Path) -> Front:
    return Front(
        tmp_path / "store",
        max_voice_seconds=5,
        max_voice_bytes=10**6,
        max_voices=2,
        accept_timeout_seconds=0.05,
    )


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

    assert (await front.http.get(f"{URL}/ada")).json() == entry
    assert (await front.http.get(f"{URL}/rms")).json() == voices["rms"]

    stored = front.catalog.voices.store.find("ada")
    assert stored is not None
    assert stored.consent == "cons_1"
    kept = front.catalog.voices.store.codes(stored, "encoder-dialogue")
    assert kept is not None
    assert np.array_equal(kept, CODES)

    assert (await front.http.delete(f"{URL}/ada")).status_code == 204
    for method in ("DELETE", "GET"):
        gone = await front.http.request(method, f"{URL}/ada")
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


async def test_while_no_replica_is_there_a_recording_waits_for_none(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in a new voice, nor in speech with one whose codes are not kept yet."""
    front.catalog.voices.store.add(StoredVoice("ada", 1, None), RECORDING)
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.05)
    asked = front.engines.hang()
    speech = {"model": "opuslm", "voice": "ada", "input": "Hello."}
    async with asyncio.timeout(60):
        refused = [await add(front, "bob"), await front.http.post("/v1/audio/speech", json=speech)]
    for answer in refused:
        assert (answer.status_code, error_of(answer)["code"]) == (503, "engine_unavailable")
        assert answer.headers["retry-after"] == "2"
    assert len(asked) >= 2
    assert all(response.cancelled() for response in asked)


async def test_an_encoder_may_take_longer_than_a_replica_to_accept(front: Front) -> None:
    encoding = front.engines.hang(healthy=True)
    adding = asyncio.create_task(add(front))
    async with asyncio.timeout(60):
        for _ in range(2):  # one for each encoder
            while not encoding:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert not adding.done()
            encoding.pop().set_result(CODES)
        assert (await adding).status_code == 200
