"""``speechlm serve`` that is told to end while it starts."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.serve.service_process import ROOT, SPEECHLM, Service, free_port

pytestmark = pytest.mark.serve


@pytest.mark.parametrize(("seconds", "number"), [(2.0, "SIGTERM"), (3.5, "SIGINT")])
def test_a_start_that_is_stopped_leaves_nothing(
    serve_config: Path, tmp_path: Path, seconds: float, number: str
) -> None:
    """While Ray starts, which takes signals as its own."""
    folder = Path(tempfile.mkdtemp(prefix="st-", dir="/tmp"))  # Ray's socket paths must be short
    try:
        with (tmp_path / "log").open("w") as log:
            starting = subprocess.Popen(
                [SPEECHLM, "serve", str(serve_config), "--port", str(free_port())],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(folder)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
            time.sleep(seconds)
            started = Service("", starting, folder).descendants()
            starting.send_signal(getattr(signal, number))
            assert starting.wait(timeout=30) == 0
        assert (tmp_path / "log").read_text().endswith("stopped\n")
        assert not [path for path in folder.iterdir() if path.name.startswith(("speechlm", "vllm"))]
        assert started
        assert not any(Path(f"/proc/{pid}").exists() for pid in started)
    finally:
        shutil.rmtree(folder)
