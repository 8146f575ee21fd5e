"""Damaged uploads are audio or a refusal, in bounded time and memory, and crash nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_PER_FILE_SECONDS = 10.0  # of processor time; deployments/audio/reading.py allows as much


def fuzz(seed: int, seconds: float) -> None:
    """
    Raises:
        AssertionError: naming the file at fault.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.audio_fuzzer", str(seed), str(seconds)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)
    print(f"\naudio files tried: {found}")
    assert min(found["outcomes"]["audio"], found["outcomes"]["refused"]) > 10
    assert found["slowest"] < _PER_FILE_SECONDS


def test_for_two_seconds() -> None:
    fuzz(seed=0, seconds=2)


@pytest.mark.chaos
@pytest.mark.timeout(4_000)
def test_for_minutes() -> None:
    """``FUZZ_SECONDS`` says for how long, and ``FUZZ_SEED`` with what to begin."""
    fuzz(int(os.environ.get("FUZZ_SEED", "1000")), float(os.environ.get("FUZZ_SECONDS", "300")))
