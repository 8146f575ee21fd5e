"""``speechlm convert`` on files that are no checkpoints, codecs or tokenizers."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.official.opuslm import write_opuslm
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.unit.conversion.commands import Official, Refusal, arguments_of
from vocoder_service.tiny import make_tiny_dac


def _missing(path: Path, good: bytes) -> None:
    pass


def _empty(path: Path, good: bytes) -> None:
    path.touch()


def _text(path: Path, good: bytes) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\n")


def _truncated(path: Path, good: bytes) -> None:
    path.write_bytes(good[: len(good) // 2])


def _old_format(path: Path, good: bytes) -> None:
    torch.save({"a": torch.ones(3)}, path, _use_new_zipfile_serialization=False)


def _other_zip(path: Path, good: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", "hello")


def _list(path: Path, good: bytes) -> None:
    torch.save([torch.ones(3)], path)


class _Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must not run",))


def _code(path: Path, good: bytes) -> None:
    torch.save({"a": torch.ones(3), "b": _Code()}, path)


def _pickle(path: Path, good: bytes) -> None:
    path.write_bytes(pickle.dumps({"a": 1}))


def _no_tensors(path: Path, good: bytes) -> None:
    torch.save({"module": {}}, path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_missing, "no such file"),
        (_empty, "is not a torch file"),
        (_text, "is not a torch file"),
        (_truncated, "is truncated or damaged"),
        (_old_format, "the format before 1.6"),
        (_pickle, "the format before 1.6"),
        (_other_zip, "is not a torch file"),
        (_list, "holds a list, not a state dict"),
        (_code, "holds objects beside tensors"),
        (_no_tensors, "holds no tensors"),
    ],
)
def test_a_file_that_is_no_checkpoint(
    damage: Callable[[Path, bytes], None],
    message: str,
    official: Official,
    tmp_path: Path,
    refusal: Refusal,
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = official(write_opuslm)
    file = tmp_path / "model.pth"
    damage(file, checkpoint.file.read_bytes())
    error = refusal(arguments_of(checkpoint, file))
    assert error.startswith(f"speechlm: {file}: ")
    assert message in error
    assert "this must not run" not in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--tokenizer", "--codec", "--ssl", "--backbone-config"])
def test_other_files_that_are_missing(option: str, official: Official, refusal: Refusal) -> None:
    assert "/nowhere" in refusal([*official(write_opuslm).arguments, option, "/nowhere"])


def test_a_codec_that_does_not_load(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    codec = tmp_path / "dac"
    make_tiny_dac(codec, 0, num_codebooks=8)
    arguments = [*official(write_opuslm).arguments, "--codec", str(codec)]
    (codec / "model.safetensors").unlink()
    assert f"{codec}: no model*.safetensors" in refusal(arguments)
    shutil.rmtree(codec)
    make_tiny_dac(codec, 0, num_codebooks=4)
    assert f"{codec}: the codec has 1 to 4 codebooks, not 8" in refusal(arguments)


def test_a_tokenizer_that_is_too_large(
    official: Official, tmp_path: Path, refusal: Refusal
) -> None:
    words = {f"w{i}": i for i in range(50000)}
    tokenizer = {
        "version": "1.0",
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
    }
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**tokenizer, "added_tokens": []}))
    arguments = [*official(write_opuslm_dialogue).arguments, "--tokenizer", str(tmp_path)]
    assert "50000 ids, the text range holds 49152" in refusal(arguments)
