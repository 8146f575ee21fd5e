"""Which tensor goes where, and whether they are all there: no files, no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine_adapter.conversion.errors import shortened
from engine_adapter.conversion.formats import Format, Part, Shapes


@dataclass(frozen=True)
class Plan:
    """Where the tensors of a checkpoint go.

    Attributes:
        parts: per part, the official name of each tensor by its name in the model directory.
        dropped: official names by the reason why they are left out.
        unknown: official names that the family does not know.
    """

    parts: Mapping[Part, Mapping[str, str]]
    dropped: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, names: list[str], layout: Format) -> Plan:
        """Sorts official names."""
        parts: dict[Part, dict[str, str]] = {}
        dropped: dict[str, tuple[str, ...]] = {}
        unknown: list[str] = []
        for name in names:
            rule = layout.rule_for(name)
            if rule is None:
                unknown.append(name)
            elif rule.part is None:
                dropped[rule.reason] = (*dropped.get(rule.reason, ()), name)
            else:
                target = rule.target_of(name)
                assert target is not None
                if parts.setdefault(rule.part, {}).setdefault(target, name) != name:
                    unknown.append(name)  # its place is taken
        return cls(parts, dropped, tuple(unknown))

    def without(self, part: Part, reason: str) -> Plan:
        """The plan with a part dropped for ``reason``."""
        names = tuple(self.parts.get(part, {}).values())
        parts = {p: tensors for p, tensors in self.parts.items() if p != part}
        dropped = {**self.dropped, reason: names} if names else self.dropped
        return Plan(parts, dropped, self.unknown)

    def shapes(self, part: Part, official: Shapes) -> Shapes:
        """Of a part's tensors, by their names in the model directory."""
        return {target: official[name] for target, name in self.parts.get(part, {}).items()}

    def problems(
        self, layout: Format, official: Shapes, expected: Mapping[Part, Shapes]
    ) -> list[str]:
        """What is missing, unknown or misshapen, each in a sentence; empty: nothing.

        Args:
            layout: the family's.
            official: shapes by official name.
            expected: shapes of the parts' tensors, by their names in the model directory.
        """
        missing, misshapen = [], []
        unknown = list(self.unknown)
        for part, shapes in expected.items():
            tensors = self.parts.get(part, {})
            lacking = (target for target in shapes if target not in tensors)
            missing += [layout.official_name(part, target) for target in lacking]
            for target, name in tensors.items():
                if target not in shapes:
                    unknown.append(name)
                elif official[name] != shapes[target]:
                    misshapen.append(
                        f"{name} is {list(official[name])}, not {list(shapes[target])}"
                    )
        kinds = {"missing": missing, "unknown": unknown, "misshapen": misshapen}
        return [f"{kind}: {shortened(found)}" for kind, found in kinds.items() if found]
