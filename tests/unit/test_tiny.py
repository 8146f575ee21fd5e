"""The tiny checkpoints: layout, true vocabularies, determinism, tokenizer, reader."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from engine_adapter.checkpoint import STREAM_EMBEDDING, CheckpointError, ModelDirectory
from engine_adapter.families import FAMILIES
from engine_adapter.tiny import CODECS, Recipe, make_tiny, make_tiny_of
from engine_adapter.tokenizer import SpeechTokenizer
from vocoder_service.codec import load_codec

TEXT = "Grüße, 世界! 🙂\n"
Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """The tiny checkpoint of a family, made once."""
    paths: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in paths:
            paths[family] = make_tiny(family, tmp_path_factory.mktemp(family))
        return paths[family]

    return make


@pytest.fixture
def demo(made: Make, tmp_path: Path) -> Path:
    """A copy of the demo family's checkpoint to spoil."""
    return Path(shutil.copytree(made("demo"), tmp_path / "demo"))


@pytest.mark.parametrize("family", FAMILIES)
def test_model_directory(family: str, made: Make) -> None:
    model = ModelDirectory.open(made(family))
    assert model.spec == FAMILIES[family]
    assert model.config["architectures"] == ["SpeechLM"]
    heads, hidden = model.config["num_attention_heads"], model.config["hidden_size"]
    assert heads >= 2
    assert heads * model.config["head_dim"] == hidden
    shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in model.tensors()}
    vocabulary = (torch.Size([model.spec.vocab_size, hidden]), torch.float32)
    assert shapes["model.embed_tokens.weight"] == shapes["lm_head.weight"] == vocabulary
    assert shapes[STREAM_EMBEDDING][0] == (model.spec.num_streams, hidden)
    assert model.tensor(STREAM_EMBEDDING).abs().sum(dim=1).min() > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_codec_books(family: str, made: Make) -> None:
    """As many books, of the true size, as streams carry codes, and none of them silent."""
    model = ModelDirectory.open(made(family))
    with safe_open(model.codec / "model.safetensors", framework="pt") as file:
        names = [n for n in file.keys() if n.endswith(("codebook.weight", "codebook.embed"))]  # noqa: SIM118
        books = [file.get_tensor(name) for name in names]
    sizes = [stream.size for stream in model.spec.streams[model.spec.codec_first_stream :]]
    assert [len(book) for book in books] == sizes
    assert all(book.std() > 0 for book in books)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_with_an_ssl_stream_have_its_model(family: str, made: Make) -> None:
    model = ModelDirectory.open(made(family))
    assert (model.ssl is not None) == family.startswith("opuslm")
    if model.ssl is not None:
        with safe_open(model.ssl / "centroids.safetensors", framework="pt") as file:
            assert len(file.get_tensor("centroids")) == model.spec.streams[0].size


def test_same_seed_same_bytes(demo: Path, tmp_path: Path) -> None:
    again = make_tiny("demo", tmp_path / "again")
    other = make_tiny("demo", tmp_path / "other", seed=1)
    weights = ("model.safetensors", "codec/model.safetensors")
    for name in (*weights, "config.json", "speech.json", "tokenizer/tokenizer.json"):
        assert (again / name).read_bytes() == (demo / name).read_bytes()
    for name in weights:
        assert (other / name).read_bytes() != (demo / name).read_bytes()


def test_larger_body(tmp_path: Path) -> None:
    model = ModelDirectory.open(make_tiny("demo", tmp_path, hidden=256, layers=6))
    assert model.config["head_dim"] == 64
    assert 5e6 < sum(tensor.numel() for _, tensor in model.tensors()) < 8e6


@pytest.mark.parametrize(("family", "hidden"), [("nobody", 64), ("demo", 0), ("demo", 100)])
def test_refuses(family: str, hidden: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no family 'nobody'|hidden is"):
        make_tiny(family, tmp_path, hidden=hidden)


def test_refuses_what_no_model_is_made_of(tmp_path: Path) -> None:
    spec = FAMILIES["demo"]
    odd = replace(spec.streams[-1], first_id=spec.streams[-1].first_id + 1, size=255)
    for changed, recipe, match in (
        (spec, Recipe(backbone="gpt"), "gpt is none of qwen3"),
        (spec, Recipe(codec="mp3"), "mp3 none of dac"),
        (replace(spec, streams=(*spec.streams[:-1], odd)), Recipe(), r"one size, not \[255, 256\]"),
    ):
        with pytest.raises(ValueError, match=match):
            make_tiny_of(changed, recipe, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("codec", CODECS)
def test_a_family_may_have_any_codec(codec: str, tmp_path: Path) -> None:
    """Of its streams' number and size, whatever is the codec's own."""
    spec = FAMILIES["demo"]
    model = ModelDirectory.open(make_tiny_of(spec, Recipe(codec=codec), tmp_path / "model"))
    loaded = load_codec(model.codec, num_codebooks=spec.num_streams)
    assert (loaded.num_codebooks, loaded.codebook_size) == (8, 256)


@pytest.mark.parametrize("name", ["config.json", "speech.json", "model.safetensors"])
def test_a_missing_file_is_named(name: str, demo: Path) -> None:
    (demo / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        ModelDirectory.open(demo)


def test_codec_and_tokenizer_may_be_missing_until_they_are_needed(demo: Path) -> None:
    model = ModelDirectory.open(demo)
    assert model.codec == demo / "codec"
    (model.codec / "config.json").unlink()
    model.tokenizer_file.unlink()
    model = ModelDirectory.open(demo)
    with pytest.raises(CheckpointError, match=r"codec/config\.json"):
        _ = model.codec
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        _ = model.tokenizer_file
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        SpeechTokenizer(demo, model.spec)


def test_malformed_files(demo: Path) -> None:
    config = demo / "config.json"
    content = config.read_text()
    config.write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        ModelDirectory.open(demo)
    config.write_text(json.dumps({**json.loads(content), "vocab_size": 7}))
    with pytest.raises(CheckpointError, match="vocab_size 7"):
        ModelDirectory.open(demo)
    config.write_text(content)
    (demo / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        list(ModelDirectory.open(demo).tensors())


def test_shards(demo: Path) -> None:
    whole = dict(ModelDirectory.open(demo).tensors())
    (demo / "model.safetensors").unlink()
    names = sorted(whole)
    shards = {"model-1-of-2.safetensors": names[::2], "model-2-of-2.safetensors": names[1::2]}
    for file, part in shards.items():
        save_file({name: whole[name] for name in part}, demo / file)
    weight_map = {name: file for file, part in shards.items() for name in part}
    index = demo / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))

    model = ModelDirectory.open(demo)
    assert all(torch.equal(tensor, whole[name]) for name, tensor in model.tensors())
    assert sorted(name for name, _ in model.tensors("lm_head")) == ["lm_head.weight"]
    with pytest.raises(CheckpointError, match="no tensor 'absent'"):
        model.tensor("absent")
    (demo / "model-2-of-2.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-2-of-2\.safetensors"):
        ModelDirectory.open(demo)


@pytest.fixture(scope="module")
def tokenizer(made: Make) -> SpeechTokenizer:
    return SpeechTokenizer(made("demo"), FAMILIES["demo"])


def test_ids_are_bytes(tokenizer: SpeechTokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    assert ids == [16 + byte for byte in TEXT.encode()]
    assert tokenizer.decode(ids) == TEXT
    assert tokenizer.encode("") == []


def test_ids_beyond_the_tokenizer_give_no_text(made: Make) -> None:
    spec = FAMILIES["bagpiper"]
    tokenizer = SpeechTokenizer(made("bagpiper"), spec)
    a = tokenizer.encode("a")
    assert spec.text is not None
    assert tokenizer.decode([0, *a, spec.text.end - 1, spec.vocab_size - 1, *a]) == "aa"


def test_stream_never_splits_a_character(tokenizer: SpeechTokenizer) -> None:
    stream = tokenizer.stream()
    pieces = [stream.feed([i]) for i in tokenizer.encode(TEXT)]
    assert "".join(pieces) == TEXT
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(pieces)
    assert stream.flush() == ""
    assert tokenizer.stream().feed(tokenizer.encode(TEXT)) == TEXT


def test_stream_of_any_bytes_adds_up(tokenizer: SpeechTokenizer) -> None:
    """Also where bytes are no UTF-8; each id alone, or several at once."""
    generator = torch.Generator().manual_seed(0)
    some = torch.tensor(list("aé世🙂".encode()))
    for length in (1, 2, 3, 40, 200):
        noise = torch.randint(256, (length,), generator=generator)
        mixed = some[torch.randint(len(some), (length,), generator=generator)]
        for data in (noise, mixed):
            ids = (data + 16).tolist()
            for step in (1, 3):
                stream = tokenizer.stream()
                text = "".join(stream.feed(ids[i : i + step]) for i in range(0, length, step))
                assert text + stream.flush() == tokenizer.decode(ids)


def test_stream_flushes_half_a_character(tokenizer: SpeechTokenizer) -> None:
    stream = tokenizer.stream()
    assert stream.feed(tokenizer.encode("x🙂")[:-1]) == "x"
    assert stream.flush() == "\N{REPLACEMENT CHARACTER}"
    assert stream.feed(tokenizer.encode("y")) == "y"
