"""Where a model is, from its setting, and which settings do not fit it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deployments.models.directory import find, locate
from deployments.settings import ModelSettings
from engine_adapter.families import FAMILIES
from engine_adapter.spec import StreamSpec


def test_a_directory_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    assert locate("m") == tmp_path / "m"


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        locate(str(tmp_path / "nowhere"))


def test_a_tiny_model_is_made_once(tmp_path: Path) -> None:
    made = locate("tiny:demo", tmp_path)
    written = (made / "speech.json").stat().st_mtime_ns
    assert locate("tiny:demo", tmp_path) == made
    assert (made / "speech.json").stat().st_mtime_ns == written
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "demo-tiny"]


def test_a_tiny_model_of_an_earlier_version_is_made_anew(tmp_path: Path) -> None:
    made = locate("tiny:demo", tmp_path)
    replace(FAMILIES["demo"], min_frames=9).save(made)
    (made / "config.json").unlink()
    assert locate("tiny:demo", tmp_path) == made
    assert StreamSpec.load(made) == FAMILIES["demo"]
    assert (made / "config.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "demo-tiny"]


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="opuslm"):
        locate("tiny:opus", tmp_path)


def settings_of(path: Path, **engine: Any) -> ModelSettings:
    return ModelSettings.model_validate({"id": "a", "path": str(path), "engine": engine})


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return locate("tiny:demo", tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"max_model_len": 5000}, "max_model_len: 5000 rows are more than the 4096 positions"),
        ({"kv_blocks": 7}, "kv_blocks: 7 of 128 rows are too few for max_model_len (4096)"),
        ({"quantization": "int3"}, "quantization: 'int3' is not one of"),
        ({"tensor_parallel_size": 3}, "tensor_parallel_size: 3 workers cannot share"),
        ({"max_batched_tokens": 63}, "max_batched_tokens: must be at least max_rows (64)"),
        ({"gpu_memory_utilization": 0.5}, "gpu_memory_utilization: there is no GPU"),
        ({"gpus": 2}, "gpus: must be tensor_parallel_size (1)"),
        ({"gpus": 0.5, "tensor_parallel_size": 2}, "gpus: must be tensor_parallel_size (2)"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    demo: Path, engine: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=r"^models\.3\.engine\.") as caught:
        find(settings_of(demo, **engine), 3)
    assert str(caught.value).startswith(f"models.3.engine.{message}")


def test_a_guided_model_on_one_row_is_refused(tmp_path: Path) -> None:
    made = locate("tiny:demo", tmp_path)
    replace(FAMILIES["demo"], cfg_scale=2.0).save(made)
    with pytest.raises(ValueError, match=r"models\.0\.engine\.max_rows: must be at least 2"):
        find(settings_of(made, max_rows=1), 0)
    assert find(settings_of(made, max_rows=2), 0)[1].cfg_scale == 2


@pytest.mark.parametrize(
    "engine",
    [{}, {"gpus": 1, "gpu_memory_utilization": 0.5}, {"gpus": 2, "tensor_parallel_size": 2}],
)
def test_settings_that_fit(demo: Path, engine: dict[str, Any]) -> None:
    assert find(settings_of(demo, **engine), 0) == (demo, FAMILIES["demo"])


@pytest.mark.parametrize("content", ["{", "{}", None])
def test_an_incomplete_model_is_named(tmp_path: Path, content: str | None) -> None:
    made = locate("tiny:demo", tmp_path)
    config = made / "config.json"
    config.unlink()
    if content is not None:
        config.write_text(content)
    with pytest.raises(ValueError, match=r"models\.1\.path: "):
        find(settings_of(made), 1)
