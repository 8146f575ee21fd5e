"""What a part of the benchmark found: tables of plain values, charts of them, verdicts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Value = float | int | str | None
Row = dict[str, Value]


@dataclass(frozen=True)
class Chart:
    """Columns of a table as lines over another column.

    Attributes:
        x, y: columns with numbers.
        by: columns whose values name a line; a line for each combination.
        logarithmic: the scale of ``x``.
        line: a bound to draw, on the scale of ``y``.
    """

    title: str
    x: str
    y: str
    by: tuple[str, ...] = ()
    logarithmic: bool = False
    line: float | None = None


@dataclass(frozen=True)
class Table:
    """Rows with the same columns, whose names say the unit.

    Attributes:
        note: Markdown, in front of the table.
    """

    name: str
    rows: Sequence[Row]
    note: str = ""
    charts: Sequence[Chart] = ()

    def __post_init__(self) -> None:
        if any(list(row) != list(self.rows[0]) for row in self.rows):
            raise ValueError(f"{self.name}: the rows have different columns")


@dataclass(frozen=True)
class Verdict:
    """A figure beside its target.

    Attributes:
        at_most, at_least: the target, one of them.
    """

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"{self.name}: needs one target")

    @property
    def met(self) -> bool:
        """Whether the figure keeps the target; never for what is not a number."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.at_least is not None and self.value >= self.at_least

    @property
    def target(self) -> str:
        """In words."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return f"at least {self.at_least:g}"


@dataclass(frozen=True)
class Findings:
    """All that a part has found.

    Attributes:
        raw: single measurements behind the tables, plain values.
    """

    tables: Sequence[Table]
    verdicts: Sequence[Verdict] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Findings:
        """What :meth:`to_json` made, after a way through a file."""
        tables = [
            Table(
                table["name"],
                table["rows"],
                table["note"],
                [Chart(**{**chart, "by": tuple(chart["by"])}) for chart in table["charts"]],
            )
            for table in data["tables"]
        ]
        return cls(tables, [Verdict(**verdict) for verdict in data["verdicts"]], data["raw"])
