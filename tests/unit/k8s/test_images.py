"""The image files, which are built elsewhere: what can be said of them without building them."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.unit.k8s.chart import CHART, ROOT, command

IMAGES = sorted((ROOT / "k8s/images").glob("Dockerfile.*"))
every_image = pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.suffix[1:])
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PACKAGES = {
    package
    for package in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    if "." not in package
}


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions with their arguments, comments left out and lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [(word, " ".join(rest.split())) for word, rest in pairs]


def final_stage(path: Path) -> list[tuple[str, str]]:
    """The instructions that make the image itself."""
    every = instructions(path)
    last = max(index for index, (word, _) in enumerate(every) if word == "FROM")
    return every[last:]


def test_there_is_one_for_each_engine() -> None:
    assert [path.suffix for path in IMAGES] == [".cpu", ".cuda"]


@every_image
def test_hadolint_finds_no_fault(path: Path) -> None:
    done = subprocess.run([command("hadolint"), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@every_image
def test_it_runs_as_the_user_that_the_chart_names(path: Path) -> None:
    (user,) = [rest for word, rest in final_stage(path) if word == "USER"]
    security = yaml.safe_load((CHART / "values.yaml").read_text())["podSecurityContext"]
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"


@every_image
def test_versions_are_those_of_its_lock(path: Path) -> None:
    runs = " ".join(rest for word, rest in instructions(path) if word == "RUN")
    engine = path.suffix[1:]
    assert f"--extra {engine} --constraints requirements/{engine}.txt" in runs
    for install in re.findall(r"(?:uv )?pip install [^&]*", runs):
        assert re.search(r"--no-cache(-dir)?\b", install), install
        assert "--no-deps" in install or "--requirement uv.txt" in install, install


@every_image
def test_only_the_last_stage_is_shipped_and_it_has_what_runs(path: Path) -> None:
    stage = final_stage(path)
    words = {word for word, _ in stage}
    assert {"LABEL", "HEALTHCHECK", "CMD", "USER", "ENV"} <= words
    assert not any("pip" in rest for word, rest in stage if word == "RUN")
    linked = next(rest for word, rest in stage if word == "RUN" and rest.startswith("ln "))
    assert "/opt/venv/bin/ray" in linked


def copied(path: Path) -> list[str]:
    """What it takes from the folder of the project."""
    return [
        source
        for word, rest in instructions(path)
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]


@every_image
def test_what_it_copies_exists(path: Path) -> None:
    for source in copied(path):
        assert (ROOT / source).exists(), source


def let_through(path: str) -> bool:
    """Whether Docker sends it to the builder: the last pattern decides that has it, or a folder
    around it."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sent = True
    for pattern in (line for line in lines if line and not line.startswith("#")):
        expression = re.escape(pattern.removeprefix("!"))
        expression = expression.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if re.match(rf"{expression}(?:/|$)", path):
            sent = pattern.startswith("!")
    return sent


@every_image
def test_docker_sends_what_it_copies(path: Path) -> None:
    for source in copied(path):
        assert let_through(source), source
        for file in (ROOT / source).rglob("*.py"):
            assert let_through(str(file.relative_to(ROOT))), file


def test_docker_sends_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert sent <= {source for path in IMAGES for source in copied(path)}
    for path in (
        *(".git/config", ".venv/bin/python", ".cache/model", ".data/store.sqlite3"),
        *("keys.yaml", "usage.sqlite3", "audit-0.jsonl", "requirements/lock", "tests/conftest.py"),
        *("demo_voice/work/shard", "deployments/__pycache__/cli.pyc"),
        "deployments/text/__pycache__/dates.pyc",
    ):
        assert not let_through(path), path


def imported(package: str) -> Iterator[tuple[str, str]]:
    """Each of our packages that a module imports, also where it does so late."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                if (top := name.partition(".")[0]) in PACKAGES:
                    yield str(path.relative_to(ROOT)), top


@every_image
def test_it_has_every_package_of_ours_that_its_packages_import(path: Path) -> None:
    """The commands among them: what is imported late fails as late."""
    ours = PACKAGES.intersection(copied(path))
    assert "deployments" in ours
    missing = {each for package in ours for each in imported(package) if each[1] not in ours}
    assert missing == set()


def test_versions_are_those_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["appVersion"] == PROJECT["version"]
    assert f"ray[serve]=={values['rayVersion']}" in PROJECT["dependencies"]
    for path in IMAGES:
        assert f'image.version="{PROJECT["version"]}"' in path.read_text()
