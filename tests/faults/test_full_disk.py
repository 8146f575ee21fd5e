"""A disk that is full costs what cannot be written, says so, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ``full_disk`` says, with its ``directory`` and its ``errors``."""
    directory = tmp_path_factory.mktemp("full")
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.full_disk", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "directory": directory, "errors": done.stderr}


def test_a_voice_that_cannot_be_stored_is_refused_and_counted(found: dict[str, Any]) -> None:
    assert found["before"] == 200
    refused = [error for status, error in found["full"] if status == 503]
    assert len(refused) >= 2
    assert {status for status, _ in found["full"]} <= {200, 503}
    for error in refused:
        assert (error["type"], error["code"]) == ("unavailable", "store_unavailable")
    assert found["counted"]["store_unavailable"] == len(refused)
    assert "the store cannot be used" in found["errors"]
    assert "Traceback" not in found["errors"].partition("the audit log")[0]


def test_what_was_stored_is_still_there_and_room_is_used_again(found: dict[str, Any]) -> None:
    assert found["listed"] == 200
    assert found["after"] == 200
    stored = [f"voice-{n}" for n, (status, _) in enumerate(found["full"]) if status == 200]
    assert sorted(found["kept"]) == sorted(["first", "last", *stored])


def test_recordings_are_for_the_owner_alone(found: dict[str, Any]) -> None:
    assert found["modes"]
    assert set(found["modes"]) == {"600"}


def test_a_record_that_the_audit_log_lacks_is_named(found: dict[str, Any]) -> None:
    for number in range(3):
        assert f"the audit log lacks request lost-{number}" in found["errors"]
    [file] = found["directory"].glob("audit-0.jsonl")
    assert json.loads(file.read_text().splitlines()[0])["request_id"] == "fits"
