"""What an engine leaves where it does not start, or does not end well."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vllm.v1.engine.exceptions import EngineDeadError

from engine_adapter import engine
from engine_adapter.engine import EngineConfig, SpeechEngine
from engine_adapter.families import FAMILIES
from engine_adapter.request import EngineUnavailable

FIGURES = SimpleNamespace(
    model_config=SimpleNamespace(max_model_len=9, hf_config=SimpleNamespace(hidden_size=8)),
    cache_config=SimpleNamespace(block_size=16, num_gpu_blocks=2),
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sockets go; the model's files are taken as there."""
    directory = SimpleNamespace(path=tmp_path, spec=FAMILIES["demo"])
    monkeypatch.setattr(engine, "ModelDirectory", SimpleNamespace(open=lambda _: directory))
    monkeypatch.setattr(engine, "SpeechTokenizer", lambda *_: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_engine_that_does_not_start_leaves_no_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        assert list(temporary.glob("vllm-*"))
        raise MemoryError("no room")

    monkeypatch.setattr(engine, "_start_vllm", fail)
    before = handles()
    with pytest.raises(MemoryError, match="no room"):
        SpeechEngine(EngineConfig(model="a model"))
    assert list(temporary.iterdir()) == []
    assert handles() == before


def test_an_engine_whose_end_fails_leaves_no_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("it is gone")

    running = SimpleNamespace(vllm_config=FIGURES, shutdown=fail)
    monkeypatch.setattr(engine, "_start_vllm", lambda *_: running)
    before = handles()
    started = SpeechEngine(EngineConfig(model="a model"))
    with pytest.raises(RuntimeError, match="it is gone"):
        started.shutdown()
    assert list(temporary.iterdir()) == []
    assert handles() == before


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_dead_engine_is_said_to_be_where_its_stats_are_asked_for(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """vLLM does not answer what it was asked before its core has died."""

    async def ask(_: str) -> Any:
        if when == "before":
            raise EngineDeadError
        await asyncio.Event().wait()

    async def find_dead() -> None:
        raise EngineDeadError

    monkeypatch.setattr(engine, "_LOOK_SECONDS", 0.01)
    running = SimpleNamespace(
        vllm_config=FIGURES, shutdown=int, collective_rpc=ask, check_health=find_dead
    )
    monkeypatch.setattr(engine, "_start_vllm", lambda *_: running)
    started = SpeechEngine(EngineConfig(model="a model"))
    async with asyncio.timeout(5):
        with pytest.raises(EngineUnavailable):
            await started.stats()
    started.shutdown()
