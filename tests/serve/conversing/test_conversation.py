"""Conversations, transcriptions and recorded voices of a running service."""

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.serve.conversing.clips import heard, pcm_of, speech
from tests.serve.examples import examples, run_example
from tests.serve.replica_stats import reading
from tests.serve.service_process import Service
from tests.unit.deployments.answering_stand_in import RATE, wav

pytestmark = pytest.mark.serve

DIALOGUE, OPUSLM = "opuslm-dialogue", "opuslm"

HELLO: Any = [{"role": "user", "content": "Hello."}]
AUDIO: Any = {"modalities": ["text", "audio"], "audio": {"voice": "default", "format": "wav"}}
SHORT: Any = {"seed": 4, "max_completion_tokens": 60}
LONG: Any = {"seed": 4, "max_completion_tokens": 400}  # text of any length, and audio behind it


def test_what_the_models_can_do(http: httpx.Client) -> None:
    cards = {card["id"]: card for card in http.get("/v1/models").json()["data"]}
    assert cards[DIALOGUE]["abilities"] == ["speaks", "converses", "clones", "understands_audio"]
    assert "transcribes" in cards[OPUSLM]["abilities"]
    assert cards[OPUSLM]["sample_rate"] == RATE


def test_text_is_answered_with_text(client: OpenAI) -> None:
    asked: Any = {"model": DIALOGUE, "messages": HELLO, **SHORT}
    answer = client.chat.completions.create(**asked)
    again = client.chat.completions.create(**asked)
    [choice] = answer.choices
    assert choice.message.content
    assert choice.message.content == again.choices[0].message.content
    usage = answer.usage
    assert usage is not None
    assert usage.prompt_tokens == 2 + 2 + len("Hello.") + 8 + 2  # bytes are the tokenizer's ids
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.completion_tokens <= 60
    other = client.chat.completions.create(**{**asked, "seed": 3})
    assert other.choices[0].message.content != choice.message.content


def test_audio_is_answered_with_audio_over_several_turns(client: OpenAI) -> None:
    said: Any = [{"role": "user", "content": [heard(speech(1))]}]
    first = client.chat.completions.create(model=DIALOGUE, messages=said, **AUDIO, **LONG)
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
    second = client.chat.completions.create(model=DIALOGUE, messages=turns, **AUDIO, **LONG)
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    assert second.usage.prompt_tokens_details.audio_tokens == 100 + frames

    turns[1] = {"role": "assistant", "audio": {"id": "audio_unknown"}}
    with pytest.raises(NotFoundError) as caught:
        client.chat.completions.create(model=DIALOGUE, messages=turns, **AUDIO, **SHORT)
    assert caught.value.param == "messages"


def test_the_examples_of_the_document_run(service: Service, tmp_path: Path) -> None:
    """Those in Python go on from one another; those of the shell each by itself."""
    (tmp_path / "question.wav").write_bytes(wav(speech(2)))
    session = ""
    for language, code in examples("chat.md", {"bash", "python"}):
        code = code.replace('"dialogue"', f'"{DIALOGUE}"')
        if ".venv/bin/speechlm" in code:  # starts the service, makes the recording
            continue
        if language == "python":
            session += code
            continue
        for command in re.split(r"^(?=curl )", code, flags=re.M):
            if command:
                printed = run_example(language, command, service, tmp_path)
                assert "error" not in json.loads(printed or "{}"), printed  # 204 prints nothing
    run_example("python", session + "print(text)", service, tmp_path)
    assert len(pcm_of((tmp_path / "answer.wav").read_bytes())) > 0


def test_what_is_heard_matters(client: OpenAI) -> None:
    """Two clips of equal length: the second must not be answered as if it were the first."""
    texts = []
    for seed in (0, 1, 0):
        said: Any = [{"role": "user", "content": [heard(speech(2, seed))]}]
        answer = client.chat.completions.create(model=DIALOGUE, messages=said, **SHORT)
        texts.append(answer.choices[0].message.content)
    assert texts[0] == texts[2] != texts[1]


def test_a_stream_is_the_answer_piece_by_piece(client: OpenAI) -> None:
    asked: Any = {"model": DIALOGUE, "messages": HELLO, **LONG, "modalities": ["text", "audio"]}
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
            model=DIALOGUE, messages=HELLO, **AUDIO, seed=4, max_completion_tokens=limit
        )
        assert answer.usage is not None
        assert answer.usage.completion_tokens <= limit
        if answer.choices[0].finish_reason == "length":
            assert answer.usage.completion_tokens == limit


def test_recordings_are_written_down(client: OpenAI) -> None:
    recording = np.concatenate([speech(1, 5), np.zeros(RATE), speech(1, 4)])
    file = ("a.wav", wav(recording))
    create = client.audio.transcriptions.create
    plain = create(model=OPUSLM, file=file)
    assert plain.text
    verbose: Any = create(model=OPUSLM, file=file, response_format="verbose_json")
    assert verbose.duration == 3
    assert " ".join(s.text for s in verbose.segments if s.text) == verbose.text == plain.text
    assert [round(s.start, 1) for s in verbose.segments] == [0.0, 1.8]
    assert create(model=OPUSLM, file=file, response_format="text") == f"{plain.text}\n"
    events = list(create(model=OPUSLM, file=file, stream=True))
    assert events[-1].type == "transcript.text.done"
    assert events[-1].text == plain.text
    deltas = [e.delta for e in events if e.type == "transcript.text.delta"]
    assert "".join(deltas) == plain.text


def test_silence_is_no_failure(client: OpenAI) -> None:
    silence = ("a.wav", wav(np.zeros(2 * RATE)))
    assert client.audio.transcriptions.create(model=OPUSLM, file=silence).text == ""


def test_a_missing_ability_is_named(client: OpenAI) -> None:
    file = ("a.wav", wav(speech(1)))
    with pytest.raises(BadRequestError) as transcribing:
        client.audio.transcriptions.create(model=DIALOGUE, file=file)
    with pytest.raises(BadRequestError) as conversing:
        client.chat.completions.create(model=OPUSLM, messages=HELLO)
    for caught, ability in ((transcribing, "transcribes"), (conversing, "converses")):
        assert caught.value.param == "model"
        assert repr(ability) in caught.value.message


def test_what_is_too_long_for_the_model_is_refused(client: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "x" * 3000}]
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=DIALOGUE, messages=long)
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
        answer = client.chat.completions.create(model=DIALOGUE, messages=HELLO, **options, **LONG)
        assert answer.choices[0].message.audio is not None
        answers[voice] = answer.choices[0].message.audio.data
        assert answer.usage is not None
        assert answer.usage.prompt_tokens == 20 + (510 if voice != "default" else 0)
    assert len(set(answers.values())) == 3
    asked = {"model": "opuslm", "input": "Hello.", "seed": 5, "max_duration_seconds": 1}
    spoken = {
        http.post("/v1/audio/speech", json=asked | {"voice": voice}).raise_for_status().content
        for voice in ("default", "ada", "bob")
    }
    assert len(spoken) == 3
    for name in ("ada", "bob"):
        assert http.delete(f"/v1/audio/voices/{name}").status_code == 204
    with pytest.raises(NotFoundError) as caught:
        client.chat.completions.create(model=DIALOGUE, messages=HELLO, **options, **SHORT)
    assert caught.value.param == "audio"


def test_leaving_a_conversation_frees_everything(service: Service, http: httpx.Client) -> None:
    body = {"model": DIALOGUE, "messages": HELLO, "stream": True, "temperature": 3, **AUDIO}
    body["audio"] = {"voice": "default", "format": "pcm16"}
    with reading(service, f"engine-{DIALOGUE}") as read:
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
