"""Files of a conversion: shards, a directory that appears whole, and how much memory it takes."""

from __future__ import annotations

import json
import mmap
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from deployments.cli import main
from engine_adapter.checkpoint import ModelDirectory
from engine_adapter.conversion.conversion import Conversion, Request
from engine_adapter.conversion.errors import ConversionError
from engine_adapter.conversion.shards import Entry, split
from engine_adapter.conversion.staging import staged
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.opuslm_dialogue import write_opuslm_dialogue


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> OfficialCheckpoint:
    return write_opuslm_dialogue(tmp_path_factory.mktemp("official"))


@pytest.fixture
def conversion(checkpoint: OfficialCheckpoint) -> Conversion:
    return Conversion.prepare(
        Request(checkpoint.family, checkpoint.file, backbone_config=checkpoint.backbone_config)
    )


def test_shards_hold_every_tensor_once(conversion: Conversion, tmp_path: Path) -> None:
    written: list[int] = []
    conversion.write(tmp_path / "one", written.append)
    conversion.write(tmp_path / "many", lambda _: None, shard_bytes=1_000_000)
    assert sum(written) == conversion.weight_bytes
    one, many = ModelDirectory.open(tmp_path / "one"), ModelDirectory.open(tmp_path / "many")
    assert [path.name for path in one.shards] == ["model.safetensors"]
    assert [path.name for path in many.shards] == [
        f"model-{k:05d}-of-00003.safetensors" for k in (1, 2, 3)
    ]
    tensors = dict(one.tensors())
    for name, tensor in many.tensors():
        assert torch.equal(tensor, tensors.pop(name))
    assert not tensors
    index = json.loads((tmp_path / "many" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == conversion.weight_bytes


def test_split() -> None:
    def entry(name: str, elements: int) -> Entry:
        return Entry(name, (elements,), torch.uint8, list)

    def names(*entries: Entry) -> list[str]:
        return ["".join(entry.name for entry in shard) for shard in split(entries, 10)]

    assert names() == [""]
    assert names(entry("a", 10), entry("b", 1)) == ["a", "b"]
    assert names(entry("a", 4), entry("b", 6), entry("c", 5)) == ["ab", "c"]
    assert names(entry("a", 1), entry("b", 99), entry("c", 1)) == ["a", "b", "c"]


def test_a_conversion_that_fails_leaves_nothing(conversion: Conversion, tmp_path: Path) -> None:
    def interrupted(_: int) -> None:
        assert (tmp_path / "out.partial" / "speech.json").is_file()
        assert not (tmp_path / "out").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conversion.write(tmp_path / "out", interrupted)
    assert list(tmp_path.iterdir()) == []
    conversion.write(tmp_path / "out", lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from engine_adapter.conversion.staging import staged
with staged(Path(sys.argv[1]), 0) as directory:
    (directory / "model.safetensors").write_text("half")
    (directory / "codec").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_conversion_left_is_removed(conversion: Conversion, tmp_path: Path) -> None:
    out = tmp_path / "out"
    subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert not out.exists()
    assert (tmp_path / "out.partial" / "codec").is_dir()
    conversion.write(out, lambda _: None)
    assert not (out / "codec").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_two_conversions_to_one_place(tmp_path: Path) -> None:
    with staged(tmp_path / "out", 0) as first:
        (first / "a").touch()
        with (
            pytest.raises(ConversionError, match="another conversion writes here"),
            staged(tmp_path / "out", 0),
        ):
            pass
        assert (first / "a").exists()
    assert (tmp_path / "out" / "a").exists()


def test_files_of_others_are_left_alone(
    checkpoint: OfficialCheckpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "out.partial" / "thesis.txt"
    theirs.parent.mkdir()
    theirs.touch()
    assert main([*checkpoint.arguments, "--out", str(tmp_path / "out")]) == 1
    assert "exists and was not left there by a conversion" in capsys.readouterr().err
    assert main([*checkpoint.arguments, "--out", str(theirs.parent)]) == 1
    assert "exists and is not an empty directory" in capsys.readouterr().err
    assert theirs.exists()


def test_an_empty_directory_is_taken(checkpoint: OfficialCheckpoint, tmp_path: Path) -> None:
    assert main([*checkpoint.arguments, "--out", str(tmp_path)]) == 0
    assert ModelDirectory.open(tmp_path).spec.family == "opuslm-dialogue"


def test_too_little_space(tmp_path: Path) -> None:
    with (
        pytest.raises(ConversionError, match=r"1000000\.0 GB are needed, \d+\.\d GB are free"),
        staged(tmp_path / "out", 10**15),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


# 2.04 GB in bfloat16: two tables of 657 MB and six layers.
HIDDEN, INTERMEDIATE, LAYERS, HEADS, KEY_HEADS = 2048, 8192, 6, 16, 4
VOCABULARY = 160392
MEASURED = """
import json, sys
from pathlib import Path
import torch, transformers
from engine_adapter.conversion.conversion import Conversion, Request

def kilobytes(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))

checkpoint, config, codec, out = map(Path, sys.argv[1:])
request = Request("bagpiper", checkpoint, backbone_config=config, codec=codec)
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = kilobytes("VmRSS:")
moved = []
Conversion.prepare(request).write(out, moved.append)
print(json.dumps({"moved": sum(moved), "growth": (kilobytes("VmHWM:") - before) * 1024}))
"""


def write_large(folder: Path) -> Path:
    """A Bagpiper of 2 GB, all zeros but for one row; it is a sparse file."""

    def layer(number: int) -> dict[str, torch.Tensor]:
        shapes = {
            "self_attn.q_proj": (HIDDEN, HIDDEN),
            "self_attn.k_proj": (KEY_HEADS * 128, HIDDEN),
            "self_attn.v_proj": (KEY_HEADS * 128, HIDDEN),
            "self_attn.o_proj": (HIDDEN, HIDDEN),
            "self_attn.q_norm": (128,),
            "self_attn.k_norm": (128,),
            "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
            "mlp.up_proj": (INTERMEDIATE, HIDDEN),
            "mlp.down_proj": (HIDDEN, INTERMEDIATE),
            "input_layernorm": (HIDDEN,),
            "post_attention_layernorm": (HIDDEN,),
        }
        prefix = f"model.layers.{number}."
        return {
            f"{prefix}{name}.weight": torch.zeros(shape, dtype=torch.bfloat16)
            for name, shape in shapes.items()
        }

    state = {
        "model.embed_tokens.weight": torch.zeros(VOCABULARY, HIDDEN, dtype=torch.bfloat16),
        "lm_head.weight": torch.zeros(VOCABULARY, HIDDEN, dtype=torch.bfloat16),
        "stream_emb.weight": torch.zeros(8, HIDDEN, dtype=torch.bfloat16),
        "model.norm.weight": torch.zeros(HIDDEN, dtype=torch.bfloat16),
    }
    for number in range(LAYERS):
        state |= layer(number)
    file = folder / "model.pt"
    with torch.serialization.skip_data():
        torch.save({"module": state}, file)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        mapped = torch.load(file, mmap=True, weights_only=True)["module"]
        mapped["lm_head.weight"][-1] = torch.arange(HIDDEN)
    return file


def test_memory_of_a_conversion_of_two_gigabytes(tmp_path: Path) -> None:
    """Resident memory, pages of files included: the checkpoint is read, not mapped."""
    config = {
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "head_dim": 128,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "codec").mkdir()
    out = tmp_path / "out"
    try:
        file = write_large(tmp_path)
        paths = [file, tmp_path / "config.json", tmp_path / "codec", out]
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *map(str, paths)],
            capture_output=True,
            text=True,
            check=True,
        )
        measured = json.loads(done.stdout)
        assert measured["moved"] > 2e9
        assert measured["growth"] < 1e9
        with safe_open(out / "model.safetensors", framework="pt") as written:
            last = written.get_slice("lm_head.weight")[VOCABULARY - 2 :]
        assert torch.equal(last[1], torch.arange(HIDDEN).bfloat16())
        assert not last[0].any()
    finally:
        shutil.rmtree(tmp_path)
