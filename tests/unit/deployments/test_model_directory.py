"""Where a model is, from its setting."""

from dataclasses import replace
from pathlib import Path

import pytest

from deployments.model_directory import locate
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
