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


@every_image
def test_what_it_copies_exists(path: Path) -> None:
    for word, rest in instructions(path):
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            for source in sources:
                assert (ROOT / source).exists(), source


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
    copied = {
        source
        for word, rest in instructions(path)
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
        if source in PACKAGES
    }
    assert "deployments" in copied
    missing = {each for package in copied for each in imported(package) if each[1] not in copied}
    assert missing == set()


def test_versions_are_those_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["appVersion"] == PROJECT["version"]
    assert f"ray[serve]=={values['rayVersion']}" in PROJECT["dependencies"]
    for path in IMAGES:
        assert f'image.version="{PROJECT["version"]}"' in path.read_text()
