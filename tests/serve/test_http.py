"""The service over HTTP, as its users meet it."""

import asyncio
import base64
import io
import json
import subprocess
import time
import wave
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from openai import BadRequestError, NotFoundError, OpenAI

from deployments.audio.reading import read_audio
from deployments.front_end.proxy import SANE_REQUEST_ID
from tests.serve.audit_log import audited
from tests.serve.replica_stats import Stats, await_idle, idle
from tests.serve.service_process import ROOT, SPEECHLM, Service, running_service

pytestmark = pytest.mark.serve

FRAMES_PER_SECOND = 50  # of the endless model's codec
Pcm = NDArray[np.int16]


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "demo",
        "voice": "rms",
        "input": "Hello there.",
        "seed": 7,
        "max_duration_seconds": 2,
        "response_format": "wav",
        **changes,
    }


def samples(wav: bytes) -> Pcm:
    """Of a WAV file with true sizes."""
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        assert len(wav) == 44 + 2 * file.getnframes()
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.int16)


def assert_same_audio(actual: Pcm, expected: Pcm) -> None:
    """Equal up to rounding: a decoder's float sums depend on what shares its batch."""
    assert actual.shape == expected.shape
    assert np.abs(actual.astype(int) - expected).max() <= 3
    assert np.abs(expected).max() > 0


def speechlm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SPEECHLM, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return httpx.Client(base_url=service.url, timeout=120)


def test_audio_arrives_while_it_is_generated(http: httpx.Client) -> None:
    asked = body(max_duration_seconds=10)
    began = time.monotonic()
    arrivals = []
    with http.stream("POST", "/v1/audio/speech", json={**asked, "stream": True}) as response:
        assert response.status_code == 200
        assert response.headers["transfer-encoding"] == "chunked"
        pieces = []
        for piece in response.iter_raw():
            pieces.append(piece)
            arrivals.append(time.monotonic() - began)
    assert len(pieces) >= 4
    assert arrivals[0] < 0.5 * arrivals[-1]

    streamed = b"".join(pieces)
    assert streamed[:4] == b"RIFF"
    assert streamed.count(b"RIFF") == 1
    assert streamed[4:8] == streamed[40:44] == b"\xff" * 4
    whole = samples(http.post("/v1/audio/speech", json=asked).content)
    assert_same_audio(np.frombuffer(streamed[44:], "<i2"), whole)


def test_pcm_is_24_khz_and_whole(http: httpx.Client) -> None:
    wav = http.post("/v1/audio/speech", json=body())
    pcm = http.post("/v1/audio/speech", json=body(response_format="pcm"))
    assert pcm.headers["content-type"] == "audio/pcm"
    assert (wav.headers["x-sample-rate"], pcm.headers["x-sample-rate"]) == ("16000", "24000")
    assert "content-length" not in pcm.headers
    assert len(pcm.content) // 2 == round(len(samples(wav.content)) * 24_000 / 16_000)


def test_the_headers_of_a_whole_answer(http: httpx.Client) -> None:
    response = http.post("/v1/audio/speech", json=body(), headers={"x-request-id": "mine-1"})
    assert response.headers["x-request-id"] == "mine-1"
    assert response.headers["x-seed"] == "7"
    assert response.headers["x-finish-reason"] == "length"
    short = http.post("/v1/audio/speech", json=body(max_duration_seconds=0.2))
    assert short.headers["x-finish-reason"] == "length"
    assert 0.19 * 16_000 < len(samples(short.content)) <= 0.2 * 16_000


@pytest.mark.parametrize("value", [b"", b"\xff", b"two words"])
def test_a_request_id_that_would_garble_a_log_is_replaced(http: httpx.Client, value: bytes) -> None:
    named = [(b"x-request-id", value), (b"serve_multiplexed_model_id", b"\xff")]
    response = http.get("/v1/models", headers=named)
    assert response.status_code == 200
    assert SANE_REQUEST_ID.fullmatch(response.headers["x-request-id"])


def test_a_seed_is_drawn_and_can_be_used_again(http: httpx.Client) -> None:
    first = http.post("/v1/audio/speech", json=body(seed=None, cfg_scale=2))
    seed = int(first.headers["x-seed"])
    again = http.post("/v1/audio/speech", json=body(seed=seed, cfg_scale=2))
    unguided = http.post("/v1/audio/speech", json=body(seed=seed))
    assert_same_audio(samples(again.content), samples(first.content))
    assert not np.array_equal(samples(unguided.content), samples(first.content))


def test_voices_differ(http: httpx.Client) -> None:
    one, other = (http.post("/v1/audio/speech", json=body(voice=v)) for v in ("rms", "slt"))
    assert not np.array_equal(samples(one.content), samples(other.content))


async def test_sixteen_streams_at_once_equal_one_at_a_time(service: Service) -> None:
    bodies = [
        body(input=f"Text number {i}.", seed=i, cfg_scale=1 + i % 2, stream=True) for i in range(16)
    ]
    async with httpx.AsyncClient(base_url=service.url, timeout=120) as http:
        together = await asyncio.gather(*(http.post("/v1/audio/speech", json=b) for b in bodies))
        for one, asked in zip(together, bodies, strict=True):
            alone = await http.post("/v1/audio/speech", json={**asked, "stream": False})
            assert_same_audio(np.frombuffer(one.content[44:], "<i2"), samples(alone.content))


def test_a_closed_connection_frees_everything_within_a_second(
    http: httpx.Client, stats: Stats
) -> None:
    await_idle(stats, 10)
    long = body(cfg_scale=2, stream=True, max_duration_seconds=60)
    with http.stream("POST", "/v1/audio/speech", json=long) as response:
        assert response.status_code == 200, response.read()
        pieces = response.iter_raw()  # held: without it the connection would close already
        next(pieces)
        assert not idle(stats())
    await_idle(stats, 1)
    assert stats()["engine"]["pairs"]["aborted"] >= 1


def test_leaving_before_the_first_audio_frees_everything_too(
    http: httpx.Client, stats: Stats
) -> None:
    await_idle(stats, 10)
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/audio/speech", json=body(max_duration_seconds=60), timeout=0.5)
    await_idle(stats, 1)


async def test_a_storm_of_clients_that_leave_keeps_no_place_taken(
    service: Service, stats: Stats, capacity: int
) -> None:
    random = np.random.default_rng(0)
    limits = httpx.Limits(max_connections=None)

    async def leave_early(http: httpx.AsyncClient, seed: int) -> None:
        asked = body(seed=seed, cfg_scale=1 + seed % 2, stream=True, max_duration_seconds=60)
        with suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0.01, 1.0)):
                await http.post("/v1/audio/speech", json=asked)

    async with httpx.AsyncClient(base_url=service.url, timeout=120, limits=limits) as http:
        for start in range(0, 90, 30):
            await asyncio.gather(*(leave_early(http, start + i) for i in range(30)))
        await asyncio.to_thread(await_idle, stats, 2)
        bodies = [body(seed=i) for i in range(capacity)]
        answers = await asyncio.gather(*(http.post("/v1/audio/speech", json=b) for b in bodies))
    assert [answer.status_code for answer in answers] == [200] * capacity
    pairs = stats()["engine"]["pairs"]
    assert (pairs["rows_split"], pairs["unguided_frames"]) == (0, 0)


def test_readers_that_do_not_read_slow_nobody_and_cost_their_audio_at_most(
    service: Service, http: httpx.Client, stats: Stats, serve_config: Path
) -> None:
    """Slow, so that there is more than a connection holds that nobody reads (4 MB on loopback):
    21 MB for each."""
    await_idle(stats, 10)
    seconds, speed, readers = 55, 0.25, 4
    http.post("/v1/audio/speech", json=body())
    before = service.resident_bytes()
    long = body(stream=True, max_duration_seconds=seconds, speed=speed, sample_rate=48_000)
    with ExitStack() as held:
        answers = {}
        for seed in range(readers):
            asked, name = long | {"seed": seed}, {"x-request-id": f"unread-{seed}"}
            answer = http.stream("POST", "/v1/audio/speech", json=asked, headers=name)
            answers[name["x-request-id"]] = held.enter_context(answer)
        assert http.post("/v1/audio/speech", json=body()).status_code == 200
        await_idle(stats, 120)  # the work ends, whether or not it is fetched
        assert http.post("/v1/audio/speech", json=body()).status_code == 200
        ends: dict[str, str] = {}
        deadline = time.monotonic() + 240  # it is encoded some time after it is made
        while len(ends) < readers:
            assert time.monotonic() < deadline, ends
            time.sleep(0.2)
            entries = audited(serve_config.parent)
            ends = {e["request_id"]: e["end"] for e in entries if e["request_id"] in answers}
        assert set(ends.values()) == {"complete"}
        audio = readers * seconds / speed * 48_000 * 2
        assert service.resident_bytes() - before < 1.5 * audio + 50 * 2**20
        # It was all there, and nobody's was mixed up with another's.
        unread = [answer.read() for answer in answers.values()]
    assert len(set(unread)) == readers
    assert sum(map(len, unread)) == pytest.approx(audio, rel=0.01)


def test_beyond_capacity_is_refused_before_any_audio(
    service: Service, stats: Stats, capacity: int
) -> None:
    async def all_at_once(count: int) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=service.url, timeout=120) as http:
            bodies = [body(seed=i, stream=True) for i in range(count)]
            return await asyncio.gather(*(http.post("/v1/audio/speech", json=b) for b in bodies))

    await_idle(stats, 10)
    answers = asyncio.run(all_at_once(capacity + 6))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 6
    assert all(len(a.content) > 44 for a in answers if a.status_code == 200)
    for answer in refused:
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["error"]["type"] == "rate_limit_exceeded"
    assert [a.status_code for a in asyncio.run(all_at_once(capacity))] == [200] * capacity


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "param"),
    [
        ("POST", "/v1/audio/speech", body(input=" "), 400, "input"),
        ("POST", "/v1/audio/speech", body(response_format="wave"), 400, "response_format"),
        ("POST", "/v1/audio/speech", body(cfg_scale=0.5), 400, "cfg_scale"),
        ("POST", "/v1/audio/speech", body(top_p=0), 400, "top_p"),
        ("POST", "/v1/audio/speech", body(seed=-1), 400, "seed"),
        ("POST", "/v1/audio/speech", body(seed=2**63), 400, "seed"),
        ("POST", "/v1/audio/speech", body(colour="red"), 400, "colour"),
        ("POST", "/v1/audio/speech", body(model="gpt"), 404, "model"),
        ("POST", "/v1/audio/speech", body(voice="alloy"), 404, "voice"),
        ("POST", "/v1/audio/speech", body(input="x" * 2**21), 413, None),
        ("GET", "/v1/audio/speech", None, 405, None),
        ("GET", "/v1/nothing", None, 404, None),
    ],
)
def test_errors_have_one_shape(
    http: httpx.Client, method: str, path: str, content: Any, status: int, param: str | None
) -> None:
    response = http.request(method, path, json=content)
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert response.headers["x-request-id"]


def test_models_and_health(http: httpx.Client) -> None:
    [card] = http.get("/v1/models").json()["data"]
    assert (card["id"], card["voices"], card["cfg_scale"]) == ("demo", ["rms", "slt"], 1)
    assert http.get("/v1/models/demo").json() == card
    assert http.get("/live").status_code == http.get("/ready").status_code == 200
    assert "/v1/audio/speech" in http.get("/openapi.json").json()["paths"]


def test_the_openai_client(service: Service, tmp_path: Path) -> None:
    client = OpenAI(base_url=f"{service.url}/v1", api_key="none")
    assert [model.id for model in client.models.list()] == ["demo"]
    asked: dict[str, Any] = {"model": "demo", "voice": "rms", "input": "Hello there."}
    extra = {"seed": 7, "cfg_scale": 1.5, "max_duration_seconds": 1}

    whole = client.audio.speech.create(**asked, response_format="wav", extra_body=extra)
    expected = samples(whole.content)
    assert 0.99 * 16_000 < len(expected) <= 16_000
    streaming = client.audio.speech.with_streaming_response
    with streaming.create(**asked, response_format="wav", extra_body=extra) as response:
        pieces = list(response.iter_bytes())
    assert len(pieces) > 1
    assert_same_audio(np.frombuffer(b"".join(pieces)[44:], "<i2"), expected)
    with streaming.create(**asked, response_format="pcm", extra_body=extra) as response:
        response.stream_to_file(tmp_path / "a.pcm")
    assert (tmp_path / "a.pcm").stat().st_size == 2 * len(expected) * 24_000 // 16_000

    for audio_format in ("mp3", "opus", "aac", "flac"):
        spoken = client.audio.speech.create(**asked, response_format=audio_format, extra_body=extra)
        seconds = len(read_audio(spoken.content, sample_rate=16_000, max_seconds=9)) / 16_000
        # AAC has padding of its codec around the audio.
        assert len(expected) / 16_000 <= seconds < len(expected) / 16_000 + 0.15

    with client.audio.speech.with_streaming_response.create(
        **asked, response_format="pcm", stream_format="sse", extra_body=extra
    ) as response:
        *deltas, done = (json.loads(line[6:]) for line in response.iter_lines() if line)
    audio = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    assert len(audio) == 2 * len(expected) * 24_000 // 16_000
    assert (done["type"], done["finish_reason"]) == ("speech.audio.done", "length")
    assert done["usage"]["output_tokens"] == FRAMES_PER_SECOND

    for changes, error, param in (
        ({"response_format": "wave"}, BadRequestError, "response_format"),
        ({"speed": 5.0}, BadRequestError, "speed"),
        ({"instructions": "Whisper."}, BadRequestError, "instructions"),
        ({"model": "gpt"}, NotFoundError, "model"),
        ({"voice": "alloy"}, NotFoundError, "voice"),
    ):
        with pytest.raises(error) as caught:
            client.audio.speech.create(**{**asked, **changes})
        assert caught.value.param == param


def test_without_keys_only_this_machine_s_names_are_answered(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"host": "evil.example"}) as http:
        refused = http.get("/v1/models")
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "wrong_host"
        assert http.get("/live").status_code == 200
        own = http.get("/v1/models", headers={"host": "localhost:8000"})
        assert own.status_code == 200


def test_a_port_that_is_taken_is_an_error_at_once(service: Service, serve_config: Path) -> None:
    port = service.url.rpartition(":")[2]
    done = speechlm("serve", str(serve_config), "--port", port)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.chaos
def test_an_engine_that_dies_breaks_the_stream_and_is_503(
    service: Service, serve_config: Path
) -> None:
    """Beside the other service, in a Ray cluster of its own; also stops with a dead engine."""
    with running_service(serve_config) as doomed:
        with httpx.Client(base_url=doomed.url, timeout=60) as http:
            long = body(stream=True, max_duration_seconds=60)
            with http.stream("POST", "/v1/audio/speech", json=long) as response:
                pieces = response.iter_raw()
                next(pieces)
                doomed.kill_engine()
                with pytest.raises(httpx.RemoteProtocolError):
                    list(pieces)
            answer = http.post("/v1/audio/speech", json=body())
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert answer.json()["error"]["code"] == "engine_unavailable"
            assert http.get("/ready").status_code == 503
            assert http.get("/live").status_code == 200
        doomed.stop()
    with httpx.Client(base_url=service.url) as http:
        assert http.get("/ready").status_code == 200
