"""What is installed, and where it comes from, is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUR_CODE = (
    *("bench", "cfg_pairing", "demo_voice", "deployments", "engine_adapter", "k8s"),
    "vocoder_service",
)
# What runs code that stands in data, or a shell.
DANGEROUS = {
    r"\bpickle\.(load|loads|Unpickler)\b": "pickle",
    r"torch\.load\((?![^)]*weights_only=True)": "torch.load without weights_only=True",
    r"yaml\.(unsafe_load|full_load)|Loader=yaml\.(Unsafe|Full)?Loader": "an unsafe YAML loader",
    r"trust_remote_code\s*=\s*True": "code of a model directory",
    r"shell\s*=\s*True|os\.system\(": "a shell",
    r"(?<![\w.])(eval|exec)\(": "code made at run time",
    r"allow_pickle\s*=\s*True": "pickle in NumPy's files",
    r"verify\s*=\s*False": "TLS without certificates",
}


def sources() -> list[Path]:
    return [file for folder in OUR_CODE for file in (ROOT / folder).rglob("*.py")]


def test_no_code_of_ours_runs_what_stands_in_data() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {what}"
        for file in sources()
        for pattern, what in DANGEROUS.items()
        if re.search(pattern, file.read_text())
    ]
    assert len(sources()) > 100
    assert not found


def test_what_is_dangerous_would_be_seen() -> None:
    lines = (
        "pickle.loads(data)",
        "torch.load(path)",
        "yaml.load(text, Loader=yaml.Loader)",
        "trust_remote_code=True",
        "subprocess.run(text, shell=True)",
        "x = eval(text)",
        "np.load(path, allow_pickle=True)",
        "httpx.get(url, verify=False)",
    )
    for line, pattern in zip(lines, DANGEROUS, strict=True):
        assert re.search(pattern, line), line
    safe = "torch.load(path, weights_only=True)"
    assert not [pattern for pattern in DANGEROUS if re.search(pattern, safe)]


@pytest.mark.parametrize("lock", ["cpu", "cuda", "demo-voice", "kubernetes"])
def test_the_list_of_licences_is_that_of_the_pins(lock: str) -> None:
    """After ``make lock``: ``make generated``."""
    page = (ROOT / "docs" / "licences.md").read_text()
    listed = set(re.split(r", | \| ?|\.?\n", page))
    for line in (ROOT / "requirements" / f"{lock}.txt").read_text().splitlines():
        if "==" in line:
            assert line.split(";")[0].strip().replace("==", " ") in listed, line


def test_every_dependency_says_its_licence() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    assert "| not said |" not in page
