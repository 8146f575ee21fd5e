"""PromQL as Grafana would send it: variables filled in, and what an expression asks for."""

from __future__ import annotations

from dataclasses import dataclass

import promql_parser

# What Grafana puts there when all is selected, and for a dashboard of the last hour.
GRAFANA = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$namespace": ".*",
    "$application": ".*",
    "$model": ".*",
    "$replica": ".*",
    "$price": "2.50",
}


def filled_in(expression: str) -> str:
    """With the values of all variables of Grafana.

    Raises:
        ValueError: one has no value.
    """
    for name, value in GRAFANA.items():
        expression = expression.replace(name, value)
    if "$" in expression:
        raise ValueError(f"a variable without a value: {expression}")
    return expression


@dataclass(frozen=True)
class Asked:
    """What an expression needs.

    Attributes:
        selected: each series with the labels that it is selected by.
        grouped: labels that are kept where series are added up.
    """

    selected: tuple[tuple[str, frozenset[str]], ...]
    grouped: frozenset[str]


def asked(expression: str) -> Asked:
    """What an expression needs.

    Raises:
        ValueError: it is not PromQL.
    """
    selected: list[tuple[str, frozenset[str]]] = []
    grouped: set[str] = set()

    def visit(part: promql_parser.Expr) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            labels = frozenset(matcher.name for matcher in part.matchers.matchers)
            assert part.name is not None, "every selector names its metric"
            selected.append((part.name, labels))
        elif isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            grouped.update(part.modifier.labels)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return Asked(tuple(selected), frozenset(grouped))
