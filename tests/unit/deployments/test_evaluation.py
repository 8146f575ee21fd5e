"""``speechlm eval``: manifests, answers that are kept, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo_voice.judges import Quality
from demo_voice.wer import Errors
from deployments.audio import wav
from deployments.evaluation.asking import Answer, ask
from deployments.evaluation.manifest import Item, ManifestError, read
from deployments.evaluation.report import Outcome, summary, to_markdown


def manifest(folder: Path, *lines: str) -> Path:
    path = folder / "m.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_manifest(tmp_path: Path) -> None:
    path = manifest(
        tmp_path,
        '{"id": "a", "text": "Hello.", "voice": "slt", "cfg_scale": 2, "seed": 7}',
        "",
        '{"id": 2, "task": "transcription", "text": "So.", "audio": "x.wav"}',
    )
    first, second = read(path)
    assert (first.task, first.voice, first.cfg_scale, first.seed) == ("speech", "slt", 2.0, 7)
    assert (second.id, second.audio) == (2, "x.wav")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: "),
        ('{"id": "b"}', "line 2: text: is required"),
        ('{"id": "b", "text": " "}', "line 2: text: is empty"),
        ('{"id": "b", "text": "x", "spede": 1}', "line 2: spede: is not a known field"),
        ('{"id": "b", "text": "x", "seed": "7"}', "line 2: seed: "),
        ('{"id": "b", "text": "x", "task": "sing"}', "line 2: task: "),
        ('{"id": "b", "text": "x", "task": "transcription"}', "line 2: audio: a transcription"),
        ('{"id": "b", "text": "x", "audio": "a.wav"}', "line 2: audio: a transcription"),
        ('{"id": "a", "text": "again"}', "line 2: id: 'a' is an earlier line's"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        read(manifest(tmp_path, '{"id": "a", "text": "x"}', line))


def test_no_manifest_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"m\.jsonl: No such file or directory$"):
        read(tmp_path / "m.jsonl")
    with pytest.raises(ManifestError, match="is empty"):
        read(manifest(tmp_path, "", " "))


def test_what_is_asked_of_a_model_names_its_answer() -> None:
    item = Item(id="a", text="x")
    same = Item(id="b", text="x")
    assert item.key("m") == same.key("m")
    others = [
        item.key("n"),
        item.key("m", b"sound"),
        Item(id="a", text="y").key("m"),
        Item(id="a", text="x", seed=1).key("m"),
        Item(id="a", text="x", cfg_scale=1.0).key("m"),
    ]
    assert len({item.key("m"), *others}) == 6


class Service:
    """Answers as the service does, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.broken:
            raise httpx.ReadError("gone", request=request)
        if request.url.path == "/v1/audio/transcriptions":
            assert b"RIFF" in request.content
            return httpx.Response(200, json={"text": "so"}, headers={"x-finish-reason": "stop"})
        body = json.loads(request.content)
        self.asked.append(body)
        if body["input"] == "no":
            error = {"error": {"message": "input: has no words"}}
            return httpx.Response(400, json=error)
        content = wav.file(16_000, bytes(3200))
        return httpx.Response(200, content=content, headers={"x-finish-reason": "length"})


async def answers(service: Service, items: list[Item], folder: Path) -> list[Answer]:
    transport = httpx.MockTransport(service)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await ask(client, "m", "slt", items, folder, folder / "answers")


async def test_answers_are_kept_and_failures_are_not(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(wav.file(16_000, bytes(3200)))
    items = [
        Item(id=1, text="Hello.", voice="rms", cfg_scale=2.0, seed=3),
        Item(id=2, text="no"),
        Item(id=3, task="transcription", text="So.", audio="x.wav"),
        Item(id=4, task="transcription", text="So.", audio="y.wav"),
    ]
    service = Service()
    spoken, refused, heard, missing = await answers(service, items, tmp_path)
    assert service.asked[0] == {
        "model": "m",
        "voice": "rms",
        "input": "Hello.",
        "response_format": "wav",
        "stream": False,
        "seed": 3,
        "cfg_scale": 2.0,
    }
    assert service.asked[1]["voice"] == "slt"
    assert "cfg_scale" not in service.asked[1]
    assert spoken.finish == "length"
    assert spoken.audio is not None
    assert (tmp_path / "answers" / spoken.audio).read_bytes()[:4] == b"RIFF"
    assert refused == Answer(error="400: input: has no words")
    assert heard == Answer(heard="so", finish="stop")
    assert missing.error == "y.wav: No such file or directory"
    again = await answers(service, items, tmp_path)
    assert again == [spoken, refused, heard, missing]
    assert [body["input"] for body in service.asked] == ["Hello.", "no", "no"]


async def test_a_lost_connection_fails_the_item_only(tmp_path: Path) -> None:
    service = Service()
    service.broken = True
    [answer] = await answers(service, [Item(id=1, text="Hello.")], tmp_path)
    assert answer.error == "ReadError: gone"


GOOD = Quality(3.0, 3.5, 4.0, 3.2)
OUTCOMES = [
    Outcome(Item(id="a", text="one two"), "one two", Errors(0, 0, 0, 2), GOOD, 1.0, "stop"),
    Outcome(Item(id="b", text="a|b c"), "see", Errors(1, 1, 0, 2), GOOD, 2.0, "length"),
    Outcome(Item(id="c", text="x"), error="500: broken"),
    Outcome(Item(id="d", task="transcription", text="so", audio="x"), "no", Errors(1, 0, 0, 1)),
]


def test_the_summary_of_each_task() -> None:
    speech, transcription = (summary(OUTCOMES)[task] for task in ("speech", "transcription"))
    assert (speech["items"], speech["failed"], speech["words"]) == (3, 1, 4)
    assert speech["word error rate"] == pytest.approx(0.5)
    assert speech["ended by itself"] == pytest.approx(0.5)
    assert speech["MOS (P.808)"] == pytest.approx(3.2)
    assert speech["seconds of audio"] == pytest.approx(3)
    assert transcription["word error rate"] == 1
    assert not transcription.keys() & {"MOS (P.808)", "MOS (P.835 overall)", "seconds of audio"}
    assert summary(OUTCOMES[2:3])["speech"]["word error rate"] is None


def test_the_report_and_the_results() -> None:
    text = to_markdown(OUTCOMES, "m", "speechlm eval", {"judge": "1.0"})
    assert "| word error rate | 50.0% |" in text
    assert "| d | 100% | so | no |" in text
    assert "| b | 100% | a\\|b c | see |" in text
    assert "- `c`: 500: broken" in text
    assert "- judge: `1.0`" in text
    line = OUTCOMES[1].to_json()
    assert (line["id"], line["word_errors"], line["words"], line["mos"]) == ("b", 2, 2, 3.2)
    assert OUTCOMES[2].to_json()["error"] == "500: broken"
