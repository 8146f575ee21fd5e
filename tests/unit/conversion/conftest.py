"""Checkpoints in the official formats, and what ``speechlm convert`` says of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.cli import main
from tests.official.checkpoint import OfficialCheckpoint
from tests.unit.conversion.commands import Official, Refusal, Writer


@pytest.fixture(scope="session")
def official(tmp_path_factory: pytest.TempPathFactory) -> Official:
    """A family's checkpoint, written once; nobody changes it."""
    written: dict[Writer, OfficialCheckpoint] = {}

    def of(writer: Writer) -> OfficialCheckpoint:
        if writer not in written:
            written[writer] = writer(tmp_path_factory.mktemp("official"))
        return written[writer]

    return of


@pytest.fixture
def refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """The one line in which ``speechlm convert`` refuses; it leaves nothing behind."""

    def refuse(arguments: list[str]) -> str:
        out = tmp_path / "refused"
        capsys.readouterr()
        assert main([*arguments, "--out", str(out)]) == 1
        assert not out.exists()
        assert not out.with_name("refused.partial").exists()
        error = capsys.readouterr().err
        assert error.startswith("speechlm: ")
        assert error.count("\n") == 1
        return error

    return refuse
