"""Checkpoints and codecs that are almost right are refused in words, and never run code."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine_adapter.conversion.errors import ConversionError
from engine_adapter.conversion.formats import FORMATS
from engine_adapter.conversion.source import TorchCheckpoint
from engine_adapter.conversion.vocabulary import differences, read_training_config
from engine_adapter.families import FAMILIES
from tests.faults.mutations import TRIES, mutated, rebuilt
from vocoder_service.codec import load_codec
from vocoder_service.tiny import make_tiny_dac


def saved(content: Any) -> bytes:
    """As ``torch.save`` writes it."""
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


CHECKPOINT = saved(
    {
        "module": {
            "a.weight": torch.arange(12, dtype=torch.bfloat16).reshape(3, 4),
            "b": torch.ones(2, 2, 5).transpose(0, 2),
            "steps": 7,
        }
    }
)
PICKLE_OPERATIONS = (
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"R", b"(", b"t.", b"\x94", b"K\xff", b"N", b"}"),
    *(b"ctorch._utils\n_rebuild_tensor_v2\n", b"\xff" * 8, bytes(8), b"J\xff\xff\xff\x7f"),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoint") / "model.pth"


@TRIES
@given(content=mutated(CHECKPOINT, PICKLE_OPERATIONS))
def test_a_checkpoint_of_which_bytes_are_wrong(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with suppress(ConversionError):  # any other error fails the test
        checkpoint = TorchCheckpoint(file)
        for name in checkpoint.tensors:
            for piece in checkpoint.pieces(name, torch.float32):
                assert len(piece) < 1_000


class _Code:
    """Runs a function where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


def test_a_checkpoint_never_runs_what_it_brings(file: Path) -> None:
    ran = file.parent / "ran"
    content = saved({"a": torch.ones(3), "b": _Code(ran)})
    torch.load(io.BytesIO(content), weights_only=False)
    assert ran.exists()  # it would, if it were let
    ran.unlink()
    file.write_bytes(content)
    with pytest.raises(ConversionError, match="could run code"):
        TorchCheckpoint(file)
    assert not ran.exists()


TRAINING = {
    "token_bias": {"ssl": [256, 5256], "codec": [5256, 13448], "text_bpe": [13448, 113800]},
    "codec_token_per_frame": 9,
    "token_list": ["<pad>", "<unk>", "<blank>"],
}


@TRIES
@given(content=mutated(json.dumps(TRAINING).encode(), (b"2026-13-99", b"!!bool x", b"[" * 999)))
def test_a_training_configuration_of_which_bytes_are_wrong(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with suppress(ConversionError):
        assert differences(read_training_config(file), FAMILIES["opuslm"], FORMATS["opuslm"])


@TRIES
@given(data=rebuilt(TRAINING))
def test_a_training_configuration_of_which_values_are_wrong(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data))
    with suppress(ConversionError):
        assert differences(read_training_config(file), FAMILIES["opuslm"], FORMATS["opuslm"])


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("codec")
    make_tiny_dac(directory, 0, num_codebooks=4)
    return directory


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@TRIES
@given(data=st.data())
def test_a_codec_of_which_bytes_are_wrong(codec: Path, name: str, data: st.DataObject) -> None:
    path = codec / name
    good = path.read_bytes()
    head = min(len(good), 3_000)
    path.write_bytes(data.draw(mutated(good[:head])) + good[head:])
    try:
        with suppress(ValueError, OSError, RuntimeError, KeyError):
            load_codec(codec)
    finally:
        path.write_bytes(good)
