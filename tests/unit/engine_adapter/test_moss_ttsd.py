"""A published family from outside, by data: its files become a model directory, which generates
what its own loop does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from engine_adapter.checkpoint import STREAM_EMBEDDING, CheckpointError, ModelDirectory
from engine_adapter.moss_ttsd import convert
from engine_adapter.spec import StreamSpec
from engine_adapter.tokenizer import SpeechTokenizer
from tests.reference.generate import Reference, ReferenceRequest, text_prompt
from tests.reference.moss_ttsd import MARKS, PROMPT, SIZES, Published, write_checkpoint
from tests.reference.requests import required_margin
from tests.reference.sample import Sampling

TEXT = "<speaker1>Good morning.<speaker2>Is it?"


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("moss") / "published", tied=request.param)


@pytest.fixture(scope="module")
def model(published: Path) -> Path:
    out = published.parent / "model"
    convert(published, out)
    return out


def test_channels_stand_one_after_the_other(model: Path) -> None:
    spec = StreamSpec.load(model)
    assert spec.vocab_size == sum(SIZES) == 159872
    assert [(s.first_id, s.size, s.delay) for s in spec.streams] == [
        (151665, 1024, 0),
        *((152697 + 1025 * i, 1024, i + 1) for i in range(7)),
    ]
    assert [s.pad_id for s in spec.streams[1:]] == [152697 + 1025 * i + 1024 for i in range(7)]
    assert (spec.outputs, spec.abilities, spec.tail_rows) == (("audio",), ("speaks",), 7)


def test_large_ones_are_split(published: Path, model: Path, tmp_path: Path) -> None:
    convert(published, tmp_path, shard_bytes=100_000)
    whole, parts = ModelDirectory.open(model), ModelDirectory.open(tmp_path)
    assert len(parts.shards) > len(whole.shards) == 1
    expected, found = dict(whole.tensors()), dict(parts.tensors())
    assert expected.keys() == found.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert expected["model.embed_tokens.weight"].dtype == expected[STREAM_EMBEDDING].dtype


def test_the_prompt_is_the_published_one(model: Path) -> None:
    spec = StreamSpec.load(model)
    ids = SpeechTokenizer(model, spec).encode(TEXT)
    assert ids.count(MARKS["<speaker2>"]) == 1
    rows = text_prompt(spec, "audio", ids)
    whole = Tokenizer.from_file(str(model / "tokenizer" / "tokenizer.json"))
    expected = whole.encode(PROMPT.format(text=TEXT)).ids
    assert [row[0] for row in rows] + [spec.audio_begin] == expected
    assert not any(any(row[1:]) for row in rows)


def test_it_generates_what_its_own_loop_does(published: Path, model: Path) -> None:
    own, reference = Published(published), Reference(model)
    spec = reference.spec
    tokenizer = SpeechTokenizer(model, spec)
    ended, cut = 0, 0
    for seed in (0, 4, 7, 10, 11):
        temperature = (0.8, 1.0, 1.3)[seed % 3] if seed else 0.0
        sampling = Sampling(temperature, (0, 50)[seed % 2], (1.0, 0.9)[seed % 2])
        prompt = text_prompt(spec, "audio", tokenizer.encode(TEXT[: 12 + seed]))
        request = ReferenceRequest(prompt, seed=seed, max_frames=30, **vars(sampling))
        result = reference.generate(request)
        if result.margin < required_margin(1.0):
            continue
        ids = [*(row[0] for row in prompt), spec.audio_begin]
        rows = own.generate(ids, seed, sampling, rows=30 + 7)
        audio = result.raw_ids[1:]
        firsts = [0, *(s.first_id for s in spec.streams[1:])]
        ours = [[i - first for i, first in zip(row, firsts, strict=True)] for row in audio]
        if result.finish_reason == "stop":
            ended += 1
            assert ours == rows
        else:
            cut += 1
            assert ours[:30] == rows[:30]
    assert ended >= 2
    assert cut >= 1


def test_it_ends_no_earlier_than_its_own_loop(tmp_path: Path) -> None:
    published = write_checkpoint(tmp_path / "published")
    for shard in published.glob("*.safetensors"):
        weights = load_file(shard)
        if (table := weights.get("model.embedding_list.0.weight")) is not None:
            table[MARKS["<|end_of_speech|>"], -1] = 1000
        save_file(weights, shard)
    convert(published, tmp_path / "model")
    reference = Reference(tmp_path / "model")
    prompt = text_prompt(reference.spec, "audio", [10, 11, 12])
    result = reference.generate(ReferenceRequest(prompt, temperature=0.0))
    ids = [*(row[0] for row in prompt), reference.spec.audio_begin]
    rows = Published(published).generate(ids, 0, Sampling(0.0, 0, 1.0), rows=30)
    assert [row[0] for row in result.raw_ids[1:]] == [row[0] for row in rows]
    assert len(result.codes) == 7


def without(name: str) -> Callable[[Path], None]:
    def spoil(published: Path) -> None:
        for shard in published.glob("*.safetensors"):
            save_file({k: v for k, v in load_file(shard).items() if k != name}, shard)

    return spoil


def a_tensor_more(published: Path) -> None:
    shard = next(published.glob("*.safetensors"))
    save_file(load_file(shard) | {"codec.weight": torch.zeros(1)}, shard)


def another_tokenizer(published: Path) -> None:
    file = published / "tokenizer.json"
    file.write_text(file.read_text().replace("<|end_of_speech|>", "<|stop|>"))


def no_rope(published: Path) -> None:
    file = published / "config.json"
    config = json.loads(file.read_text())
    del config["rope_theta"]
    file.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("model.embedding_list.3.weight"), r"embedding_list\.\* has .* rows"),
        (a_tensor_more, "codec.weight is not known"),
        (another_tokenizer, "no <|end_of_speech|>".replace("|", r"\|")),
        (no_rope, r"config\.json: no rope_theta"),
    ],
)
def test_what_is_something_else_is_refused(
    spoil: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    published = write_checkpoint(tmp_path / "published")
    spoil(published)
    with pytest.raises(CheckpointError, match=message):
        convert(published, tmp_path / "model")
