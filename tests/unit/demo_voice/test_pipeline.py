"""A recipe that is interrupted goes on where it was."""

from pathlib import Path

import pytest

from demo_voice import pipeline
from demo_voice.recipe import FULL
from deployments import whole_file


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has no more room for the second half of a file."""
    write = Path.write_text

    def half(path: Path, text: str) -> int:
        write(path, text[: len(text) // 2])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", half)


@pytest.mark.usefixtures("full")
def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(OSError, match="no space"):
        whole_file.write(file, "new content")
    assert file.read_bytes() == b"old"


@pytest.mark.usefixtures("full")
def test_texts_that_were_not_written_whole_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no space"):
        pipeline.speak(tmp_path, FULL, ["One text.", "Another text."])
    assert not (tmp_path / "texts.json").exists()
