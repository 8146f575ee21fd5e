"""The examples of a document, run as they stand there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.serve.service_process import ROOT, Service

_WAYS = {
    "bash": ["bash", "-c"],
    "python": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "-e"],
}


def examples(document: str, languages: set[str]) -> list[tuple[str, str]]:
    """Language and code of each example of ``docs/document``, which has just these languages."""
    text = (ROOT / "docs" / document).read_text()
    found = re.findall(rf"^```({'|'.join(_WAYS)})\n(.*?)^```", text, re.M | re.S)
    assert {language for language, _ in found} == languages
    return found


def run_example(language: str, code: str, service: Service, folder: Path) -> str | None:
    """What it prints, run in ``folder`` and sent to ``service``; None without Node.js for it."""
    way = _WAYS[language]
    if shutil.which(way[0]) is None:
        assert language == "javascript"
        assert os.environ.get("CI") != "true"
        return None
    here = code.replace("127.0.0.1:8000", service.url.removeprefix("http://"))
    done = subprocess.run([*way, here], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
