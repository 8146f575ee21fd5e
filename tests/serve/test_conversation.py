"""Conversations, transcriptions and recorded voices of a running service."""

import base64
import io
import time
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from openai import BadRequestError, NotFoundError, OpenAI

from deployments.audio.joining import Joiner
from deployments.cli import main
from engine_adapter.tiny import byte_tokenizer, make_tiny
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.listening import Listening, write_listening
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import official_model
from tests.reference import conversation as by_hand
from tests.reference.generate import Reference, ReferenceRequest, ReferenceResult
from tests.reference.requests import required_margin
from tests.serve.replica_stats import reading
from tests.serve.service_process import ROOT, Service, running_service

pytestmark = pytest.mark.serve

RATE = 16_000
HELLO: Any = [{"role": "user", "content": "Hello."}]
AUDIO: Any = {"modalities": ["text", "audio"], "audio": {"voice": "default", "format": "wav"}}
SHORT: Any = {"seed": 5, "max_completion_tokens": 60}
LONG: Any = {"seed": 5, "max_completion_tokens": 400}  # text of any length, and audio behind it
TEXT = 13448  # the dialogue model's first id of text; here the byte 0
MOST = 60  # text tokens and frames of an answer that is compared
FIRM = 5e-5  # logits by which its decisions are clear


@dataclass(frozen=True)
class Official:
    """OpusLM-Dialogue as it is published: checkpoint, DAC and XEUS, and what the command made."""

    checkpoint: OfficialCheckpoint
    listening: Listening
    directory: Path


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Official:
    folder = tmp_path_factory.mktemp("official")
    checkpoint = write_opuslm_dialogue(folder, readable=True)
    listening = write_listening(folder)
    parts = ["--codec", str(listening.codec), "--ssl", str(listening.ssl)]
    assert main([*checkpoint.arguments, *parts, "--out", str(folder / "served")]) == 0
    return Official(checkpoint, listening, folder / "served")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, official: Official) -> Iterator[Service]:
    """Two random models, one that converses and one that transcribes; and one that was converted
    from official files."""
    directory = tmp_path_factory.mktemp("conversation")
    data = yaml.safe_load((ROOT / "serve_config.yaml").read_text())
    engine = {"dtype": "float32", "max_rows": 8, "max_model_len": 2048, "kv_blocks": 100}
    data["applications"][0]["args"] = {
        "models": [
            {
                "id": name,
                "path": str(path),
                "max_concurrent_requests": 8,
                "engine": engine,
            }
            for name, path in (
                ("dialogue", make_tiny("opuslm-dialogue", directory / "dialogue")),
                ("opuslm", make_tiny("opuslm", directory / "opuslm")),
                ("official", official.directory),
            )
        ],
        "service": {"store": str(directory / "store.sqlite3"), "ingress_replicas": 2},
    }
    config = directory / "serve_config.yaml"
    config.write_text(yaml.safe_dump(data))
    with running_service(config) as running:
        yield running
        running.stop()


@pytest.fixture
def client(service: Service) -> OpenAI:
    return OpenAI(base_url=f"{service.url}/v1", api_key="none", timeout=120, max_retries=0)


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return httpx.Client(base_url=service.url, timeout=120)


def speech(seconds: float, seed: int = 0) -> NDArray[np.float64]:
    """Something with a pitch that moves, loud enough to be heard."""
    times = np.arange(int(seconds * RATE)) / RATE
    return 0.3 * np.sin(2 * np.pi * (200 + 40 * seed) * times + 3 * np.sin(9 * times))


def wav(samples: Any) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def heard(samples: Any) -> dict[str, Any]:
    data = base64.b64encode(wav(samples)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def pcm_of(data: str) -> NDArray[np.int16]:
    with wave.open(io.BytesIO(base64.b64decode(data))) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.int16)


def test_what_the_models_can_do(http: httpx.Client) -> None:
    cards = {card["id"]: card for card in http.get("/v1/models").json()["data"]}
    assert cards["dialogue"]["abilities"] == ["speaks", "converses", "clones", "understands_audio"]
    assert "transcribes" in cards["opuslm"]["abilities"]
    assert cards["opuslm"]["sample_rate"] == RATE


def test_text_is_answered_with_text(client: OpenAI) -> None:
    asked: Any = {"model": "dialogue", "messages": HELLO, **SHORT}
    answer = client.chat.completions.create(**asked)
    again = client.chat.completions.create(**asked)
    [choice] = answer.choices
    assert choice.message.content
    assert choice.message.content == again.choices[0].message.content
    usage = answer.usage
    assert usage is not None
    assert usage.prompt_tokens == 2 + 2 + len("Hello.") + 8 + 2  # bytes are the tiny model's ids
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.completion_tokens <= 60
    other = client.chat.completions.create(**{**asked, "seed": 6})
    assert other.choices[0].message.content != choice.message.content


def test_audio_is_answered_with_audio_over_several_turns(client: OpenAI) -> None:
    said: Any = [{"role": "user", "content": [heard(speech(1))]}]
    first = client.chat.completions.create(model="dialogue", messages=said, **AUDIO, **LONG)
    message = first.choices[0].message
    assert message.audio is not None
    assert message.audio.transcript
    usage = first.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert usage.prompt_tokens_details.audio_tokens == 50
    frames = usage.completion_tokens_details.audio_tokens
    samples = pcm_of(message.audio.data)
    assert frames
    assert 320 * (frames - 1) < len(samples) <= 320 * frames
    assert np.abs(samples).max() > 0

    turns: Any = [*said, message.to_dict(), {"role": "user", "content": [heard(speech(1, 1))]}]
    second = client.chat.completions.create(model="dialogue", messages=turns, **AUDIO, **LONG)
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    assert second.usage.prompt_tokens_details.audio_tokens == 100 + frames

    turns[1] = {"role": "assistant", "audio": {"id": "audio_unknown"}}
    with pytest.raises(NotFoundError) as caught:
        client.chat.completions.create(model="dialogue", messages=turns, **AUDIO, **SHORT)
    assert caught.value.param == "messages"


def test_what_is_heard_matters(client: OpenAI) -> None:
    """Two clips of equal length: the second must not be answered as if it were the first."""
    texts = []
    for seed in (0, 1, 0):
        said: Any = [{"role": "user", "content": [heard(speech(2, seed))]}]
        answer = client.chat.completions.create(model="dialogue", messages=said, **SHORT)
        texts.append(answer.choices[0].message.content)
    assert texts[0] == texts[2] != texts[1]


def test_a_stream_is_the_answer_piece_by_piece(client: OpenAI) -> None:
    asked: Any = {"model": "dialogue", "messages": HELLO, **LONG, "modalities": ["text", "audio"]}
    asked["audio"] = {"voice": "default", "format": "pcm16"}
    whole = client.chat.completions.create(**asked).choices[0]
    stream = client.chat.completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )
    transcript, pcm, reason, usage = "", b"", None, None
    for chunk in stream:
        usage = chunk.usage or usage
        if not chunk.choices:
            continue
        audio = chunk.choices[0].delta.audio
        if audio is not None:
            transcript += audio.transcript or ""
            pcm += base64.b64decode(audio.data or "")
        reason = chunk.choices[0].finish_reason or reason
    assert whole.message.audio is not None
    assert transcript == whole.message.audio.transcript
    assert reason == whole.finish_reason
    assert usage is not None
    expected = np.frombuffer(base64.b64decode(whole.message.audio.data), "<i2").astype(int)
    actual = np.frombuffer(pcm, "<i2").astype(int)
    assert actual.shape == expected.shape != (0,)
    assert np.abs(actual - expected).max(initial=0) <= 3  # windows of other sizes round otherwise


def test_a_limit_holds_for_text_and_audio_together(client: OpenAI) -> None:
    for limit in (1, 7, 40):
        answer = client.chat.completions.create(
            model="dialogue", messages=HELLO, **AUDIO, seed=5, max_completion_tokens=limit
        )
        assert answer.usage is not None
        assert answer.usage.completion_tokens <= limit
        if answer.choices[0].finish_reason == "length":
            assert answer.usage.completion_tokens == limit


def test_recordings_are_written_down(client: OpenAI) -> None:
    recording = np.concatenate([speech(1), np.zeros(RATE), speech(1, 1)])
    file = ("a.wav", wav(recording))
    create = client.audio.transcriptions.create
    plain = create(model="opuslm", file=file)
    assert plain.text
    verbose: Any = create(model="opuslm", file=file, response_format="verbose_json")
    assert verbose.duration == 3
    assert " ".join(s.text for s in verbose.segments if s.text) == verbose.text == plain.text
    assert [round(s.start, 1) for s in verbose.segments] == [0.0, 1.8]
    assert create(model="opuslm", file=file, response_format="text") == f"{plain.text}\n"
    events = list(create(model="opuslm", file=file, stream=True))
    assert events[-1].type == "transcript.text.done"
    assert events[-1].text == plain.text
    deltas = [e.delta for e in events if e.type == "transcript.text.delta"]
    assert "".join(deltas) == plain.text


def test_silence_is_no_failure(client: OpenAI) -> None:
    silence = ("a.wav", wav(np.zeros(2 * RATE)))
    assert client.audio.transcriptions.create(model="opuslm", file=silence).text == ""


def test_a_missing_ability_is_named(client: OpenAI) -> None:
    file = ("a.wav", wav(speech(1)))
    with pytest.raises(BadRequestError) as transcribing:
        client.audio.transcriptions.create(model="dialogue", file=file)
    with pytest.raises(BadRequestError) as conversing:
        client.chat.completions.create(model="opuslm", messages=HELLO)
    for caught, ability in ((transcribing, "transcribes"), (conversing, "converses")):
        assert caught.value.param == "model"
        assert repr(ability) in caught.value.message


def test_what_is_too_long_for_the_model_is_refused(client: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "x" * 3000}]
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model="dialogue", messages=long)
    assert caught.value.param == "messages"


def test_a_recorded_voice_changes_the_answer(client: OpenAI, http: httpx.Client) -> None:
    for seed, name in enumerate(("ada", "bob")):
        sample = {"audio_sample": ("a.wav", wav(speech(2, seed)))}
        made = http.post("/v1/audio/voices", data={"name": name}, files=sample)
        assert made.status_code == 200, made.text
    listed = [voice["name"] for voice in http.get("/v1/audio/voices").json()["data"]]
    assert listed == ["default", "ada", "bob"]
    answers = {}
    for voice in ("default", "ada", "bob"):
        options: Any = {**AUDIO, "audio": {"voice": voice, "format": "wav"}}
        answer = client.chat.completions.create(
            model="dialogue", messages=HELLO, **options, **SHORT
        )
        assert answer.choices[0].message.audio is not None
        answers[voice] = answer.choices[0].message.audio.data
        assert answer.usage is not None
        assert answer.usage.prompt_tokens == 20 + (510 if voice != "default" else 0)
    assert len(set(answers.values())) == 3
    for name in ("ada", "bob"):
        assert http.delete(f"/v1/audio/voices/{name}").status_code == 204
    with pytest.raises(NotFoundError) as caught:
        client.chat.completions.create(model="dialogue", messages=HELLO, **options, **SHORT)
    assert caught.value.param == "audio"


def test_an_official_model_answers_as_its_files_say(
    client: OpenAI, http: httpx.Client, official: Official
) -> None:
    """Three turns with a recorded voice: what is heard, said and sounds equals what is made of the
    official files by hand, from samples to samples."""
    reference = Reference(official_model(official.checkpoint), max_model_len=2048)
    voice = speech(1, 3)
    sample = {"audio_sample": ("a.wav", wav(voice))}
    assert http.post("/v1/audio/voices", data={"name": "eve"}, files=sample).status_code == 200
    turns: list[by_hand.Turn] = [("system", "speaker", official.listening.codes(as_heard(voice)))]
    messages: list[Any] = []
    questions: list[Any] = [speech(0.5), "And then?", speech(0.4, 1)]
    for number, asked in enumerate(questions):
        if isinstance(asked, str):
            messages.append({"role": "user", "content": asked})
            turns.append(("user", "text", as_read(asked)))
        else:
            messages.append({"role": "user", "content": [heard(asked)]})
            turns.append(("user", "audio", official.listening.codes(as_heard(asked))))
        seed, expected = firm(reference, turns, first_seed=100 * number)
        answer = client.chat.completions.create(
            model="official",
            messages=messages,
            modalities=["text", "audio"],
            audio={"voice": "eve", "format": "wav"},
            seed=seed,
            max_completion_tokens=MOST,
        )
        message = answer.choices[0].message
        assert message.audio is not None
        transcript = byte_tokenizer().decode([i - TEXT for i in expected.text_ids])
        assert message.audio.transcript == transcript
        codes = expected.codes[: MOST - len(expected.text_ids)]
        usage = answer.usage
        assert usage is not None
        assert usage.prompt_tokens == len(by_hand.dialogue(turns, spoken=True))
        assert usage.completion_tokens_details is not None
        assert usage.completion_tokens_details.audio_tokens == len(codes)
        made, sound = pcm_of(message.audio.data), as_sent(official.listening.audio(codes))
        assert made.shape == sound.shape
        assert np.abs(made.astype(int) - sound).max() <= 2  # rounded in sums of another order
        assert np.abs(sound).max() > 300
        messages.append({"role": "assistant", "audio": {"id": message.audio.id}})
        turns += [("assistant", "text", as_read(transcript)), ("assistant", "audio", codes)]
    assert http.delete("/v1/audio/voices/eve").status_code == 204


def as_heard(samples: NDArray[np.float64]) -> NDArray[np.float32]:
    """What a WAV file of 16 bits holds."""
    return ((samples * 32767).astype("<i2") / np.float32(32768)).astype(np.float32)


def as_read(text: str) -> list[int]:
    return [TEXT + byte for byte in text.encode()]


def as_sent(sound: NDArray[np.float32]) -> NDArray[np.int64]:
    """As 16 bits, faded in and out."""
    joiner = Joiner(RATE)
    pcm = np.rint(sound.clip(-1, 1) * 32767).astype("<i2").tobytes()
    return np.frombuffer(joiner.piece(pcm) + joiner.finish(), "<i2").astype(np.int64)


def firm(
    reference: Reference, turns: Sequence[by_hand.Turn], first_seed: int
) -> tuple[int, ReferenceResult]:
    """An answer with text and a few frames, none of whose decisions is a close one."""
    rows = by_hand.dialogue(turns, spoken=True)
    for seed in range(first_seed, first_seed + 40):
        result = reference.generate(
            ReferenceRequest(
                rows, output="text+audio", seed=seed, max_text_tokens=MOST, max_frames=MOST
            )
        )
        long_enough = 3 <= len(result.text_ids) <= MOST - 8 and len(result.codes) >= 8
        text = byte_tokenizer().decode([i - TEXT for i in result.text_ids])
        if long_enough and text.strip() and result.margin >= required_margin(1.0, FIRM):
            return seed, result
    pytest.fail("every answer is short, or has a close decision")


def test_leaving_a_conversation_frees_everything(service: Service, http: httpx.Client) -> None:
    body = {"model": "dialogue", "messages": HELLO, "stream": True, "temperature": 3, **AUDIO}
    body["audio"] = {"voice": "default", "format": "pcm16"}
    with reading(service, "engine-dialogue") as read:
        for pieces in (1, 5):
            with http.stream("POST", "/v1/chat/completions", json=body) as response:
                assert response.status_code == 200, response.read()
                lines = response.iter_lines()
                for _ in range(pieces):
                    next(lines)
            deadline = time.monotonic() + 2
            while True:
                stats = read()
                left = (
                    stats["requests"],
                    stats["vocoder"]["live_streams"],
                    stats["engine"]["rows_running"],
                    stats["engine"]["blocks_in_use"],
                )
                if not any(left):
                    break
                assert time.monotonic() < deadline, stats
                time.sleep(0.02)
