"""Where a model is, from its setting, and which settings do not fit it."""

import json
import os
import shutil
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


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "[]", "config.json: not a JSON object"),
        ("config.json", None, "config.json: no such file"),
        ("config.json", "{", "config.json: Expecting"),
        ("speech.json", "[]", "speech.json: not a JSON object"),
        ("speech.json", "{}", "speech.json: stream spec: streams is missing"),
        ("speech.json", None, "speech.json: No such file or directory"),
        ("model.safetensors", None, "model.safetensors: no such file"),
        ("model.safetensors", "cut", "model.safetensors: its end is missing"),
        ("model.safetensors", "", "model.safetensors: is no safetensors file"),
        ("model.safetensors.index.json", "[]", "index.json: not a JSON object"),
        ("model.safetensors.index.json", '{"weight_map": {"a": 1}}', "weight_map must name files"),
        ("codec", None, "codec: no such directory; the model has no codec"),
        ("codec/config.json", None, "codec/config.json: no such file"),
        ("codec/config.json", "[]", "codec/config.json: has no sample rate"),
        ("codec/config.json", '{"sampling_rate": []}', "is no configuration of a codec"),
        ("codec/model.safetensors", None, "codec: no model*.safetensors"),
        ("codec/model.safetensors", "cut", "codec: model.safetensors: its end is missing"),
        ("tokenizer", None, "tokenizer/tokenizer.json: no such file"),
        ("tokenizer/tokenizer.json", "[]", "tokenizer/tokenizer.json: "),
    ],
)
def test_a_damaged_part_is_named_once(
    tmp_path: Path, demo: Path, file: str, content: str | None, message: str
) -> None:
    model = Path(shutil.copytree(demo, tmp_path / "m"))
    damage(model / file, content)
    with pytest.raises(ValueError, match=r"^models\.0\.path: /") as caught:
        find(settings_of(model), 0)
    said = str(caught.value)
    assert message in said
    assert said.count(str(model)) == 1
    assert "Errno" not in said
    assert "\n" not in said


def damage(path: Path, content: str | None) -> None:
    """
    Args:
        content: to write; ``cut``: half of what is there stays; None: nothing does.
    """
    if content == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif content is not None:
        path.write_text(content)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope_parameters", []),
        ("quantization_config", "awq"),
        ("num_key_value_heads", "four"),
        ("num_attention_heads", True),
        ("head_dim", [1]),
        ("hidden_size", None),
    ],
)
def test_a_value_of_another_kind_is_named(
    tmp_path: Path, demo: Path, key: str, value: object
) -> None:
    model = Path(shutil.copytree(demo, tmp_path / "m"))
    config = json.loads((model / "config.json").read_text()) | {key: value}
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=rf"^models\.0\.path: config\.json: {key} "):
        find(settings_of(model), 0)
