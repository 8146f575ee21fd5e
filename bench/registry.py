"""The parts of the benchmark, in the order of the report. Names only: nothing is imported."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from bench.document import About
from bench.findings import Findings
from bench.setting import Setting

Target = Literal["engine", "http"]
TARGETS: tuple[Target, ...] = ("engine", "http")


class Module(Protocol):
    """What the module of a part has."""

    ABOUT: About

    def measure(self, setting: Setting) -> Findings:
        """Raises when something could not be measured; verdicts are no errors."""
        ...


@dataclass(frozen=True)
class Part:
    """One measurement that is run by itself, in a process of its own.

    Attributes:
        target: ``http`` needs a running service.
    """

    name: str
    target: Target

    def load(self) -> Module:
        """The module ``bench.parts.NAME``."""
        return cast(Module, importlib.import_module(f"bench.parts.{self.name}"))


PARTS = (
    Part("closed_loop", "http"),
    Part("open_loop", "http"),
    Part("engine", "engine"),
    Part("pairs", "engine"),
    Part("guidance", "engine"),
    Part("host", "engine"),
    Part("ablations", "engine"),
    Part("vocoder", "engine"),
    Part("components", "engine"),
    Part("alignment", "engine"),
)


def chosen(names: Sequence[str] | None, target: Target | None) -> list[Part]:
    """The parts of these names and of this target; None: all."""
    return [
        part
        for part in PARTS
        if (names is None or part.name in names) and target in (None, part.target)
    ]
