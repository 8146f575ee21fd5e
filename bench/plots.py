"""Line charts as SVG. Pure: equal data give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from bench.findings import Chart, Row

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 180, 34, 46
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
_TICKS = 5


def chart(rows: Sequence[Row], about: Chart) -> str | None:
    """The chart of a table; None where fewer than two of its rows have numbers to draw."""
    lines = lines_of(rows, about)
    if sum(len(points) for points in lines.values()) < 2:
        return None
    return svg(lines, about)


def lines_of(rows: Sequence[Row], about: Chart) -> dict[str, Points]:
    """The points of each line, by its name, ascending; rows without numbers are left out."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        x, y = row[about.x], row[about.y]
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            continue
        if not (math.isfinite(x) and math.isfinite(y)) or (about.logarithmic and x <= 0):
            continue
        name = ", ".join(
            value if isinstance(value, str) else f"{column} {_number(value)}"
            for column, value in ((column, row[column]) for column in about.by)
        )
        lines.setdefault(name, []).append((float(x), float(y)))
    return {name: sorted(points) for name, points in lines.items()}


def svg(lines: Mapping[str, Points], about: Chart) -> str:
    """Lines with markers, axes from 0 (y) and through all points (x), a legend to the right."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    highest = max(y for points in lines.values() for _, y in points)
    if about.line is not None:
        highest = max(highest, about.line)
    ticks = nice_ticks(highest)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def across(x: float) -> float:
        low, high, value = (math.log(v) if about.logarithmic else v for v in (xs[0], xs[-1], x))
        share = 0.5 if high == low else (value - low) / (high - low)
        return _LEFT + share * (right - _LEFT)

    def up(y: float) -> float:
        return bottom - y / ticks[-1] * (bottom - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 18, about.title, weight="bold"),
    ]
    for tick in ticks:
        parts.append(_line(_LEFT, up(tick), right, up(tick), "#dddddd"))
        parts.append(_text(_LEFT - 6, up(tick) + 4, _number(tick), anchor="end"))
    for x in _spread(xs):
        parts.append(_text(across(x), bottom + 18, _number(x), anchor="middle"))
    parts.append(_line(_LEFT, bottom, right, bottom, "#333333"))
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 8, about.x, anchor="middle"))
    parts.append(_text(_LEFT, _TOP - 4, about.y, size=11))
    if about.line is not None:
        y = up(about.line)
        parts.append(_line(_LEFT, y, right, y, "#333333", dashed=True))
        parts.append(_text(right + 8, y + 4, f"target {_number(about.line)}", size=11))
    for index, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in points
        ]
        if name:
            y = _TOP + 18 * index
            parts.append(_line(right + 8, y, right + 24, y, colour, width=2))
            parts.append(_text(right + 28, y + 4, name, size=11))
    return "\n".join([*parts, "</svg>"]) + "\n"


def nice_ticks(highest: float) -> list[float]:
    """Round values from 0 to at least ``highest``, about five steps."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / _TICKS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough * (1 - 1e-9))
    return [step * i for i in range(math.ceil(highest / step - 1e-9) + 1)]


def _spread(xs: Sequence[float]) -> Sequence[float]:
    """At most ten of the values, the first and the last among them."""
    if len(xs) <= 10:
        return xs
    return [xs[round(i * (len(xs) - 1) / 9)] for i in range(10)]


def _number(value: float | int | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1, dashed: bool = False
) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"{dash}/>'
    )


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
