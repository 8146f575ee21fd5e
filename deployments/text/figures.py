"""Numbers without a unit: telephone numbers, ranges, fractions, ordinals, versions, the rest."""

from __future__ import annotations

import re

from deployments.text.numbers import LONGEST, amount, cardinal, digits, ordinal, plain, plural
from deployments.text.rules import DASH, MINUS, NUMBER, START, Rule, from_table, rule

_FAMILIAR = {
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "20/20": "twenty twenty",
    "80/20": "eighty twenty",
    "50/50": "fifty fifty",
    "911": "nine one one",
}
_PARTS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_NUMBERED = {
    "no": "number",
    "nos": "numbers",
    "#": "number",
    "p": "page",
    "pp": "pages",
    "pg": "page",
    "vol": "volume",
    "vols": "volumes",
    "ch": "chapter",
    "chap": "chapter",
    "fig": "figure",
    "figs": "figures",
    "sec": "section",
    "§": "section",
    "eq": "equation",
    "art": "article",
    "apt": "apartment",
    "rm": "room",
    "ste": "suite",
    "ext": "extension",
    "pt": "part",
    "c": "circa",
    "ca": "circa",
    "approx": "approximately",
    "est": "established",
    "b": "born",
    "d": "died",
}
_COMPASS = {"N": "North", "E": "East", "S": "South", "W": "West"}
_STREETS = "St|Ave|Rd|Blvd|Dr|Ln|Street|Avenue|Road|Boulevard|Drive|Lane"
_MONEY = "[$£€]"
_NOON = r"(?:\s?[AaPp]\.?[Mm]\b\.?)"


def _too_long(match: re.Match[str]) -> str:
    return f"{'point ' if match['point'] else ''}{digits(match['digits'])}"


def _groups(match: re.Match[str]) -> str:
    """Digit by digit, with commas between the groups."""
    groups = [digits(group) for group in re.findall(r"\d+", match[0])]
    pause = ", " if any(" " in group for group in groups) else " "
    return ("plus " if match[0].startswith("+") else "") + pause.join(groups)


def _zip_code(match: re.Match[str]) -> str:
    return f"{match[1]} {', '.join(digits(part) for part in match[2].split('-'))}"


def _range(match: re.Match[str]) -> str | None:
    if match["fraction"] and "/" not in match[1]:
        return None  # 1-1/2 is one and a half
    return f"{match[1]} {'minus' if match['sum'] else 'to'}"


def _spaced_dash(match: re.Match[str]) -> str:
    """``10 - 3`` is a difference, ``3 - 10`` and ``3 - 10 = `` are a range and a difference."""
    first, second = (float(match[name].replace(",", "")) for name in ("first", "second"))
    return f"{match['first']} {'minus' if match['sum'] or first > second else 'to'}"


def _fraction(match: re.Match[str]) -> str | None:
    if match[0] in _FAMILIAR:
        return _FAMILIAR[match[0]]
    whole, top, bottom = match["whole"], int(match["top"]), int(match["bottom"])
    if bottom < 2 or (bottom > 20 and bottom not in (32, 64, 100, 1000)):
        over = f"{cardinal(top)} over {cardinal(bottom)}"
        return f"{amount(whole)} {over}" if whole else over
    part, parts = _PARTS.get(bottom) or _ordinal_parts(bottom)
    spoken = f"{cardinal(top)} {part if top == 1 else parts}"
    if not whole:
        return spoken
    return f"{amount(whole)} and {f'a {part}' if top == 1 and bottom in _PARTS else spoken}"


def _ordinal_parts(bottom: int) -> tuple[str, str]:
    part = ordinal(bottom).removeprefix("one ")
    return part, part + "s"


def _ordinal(match: re.Match[str]) -> str:
    written = match["number"].replace(",", "")
    return ordinal(int(written)) + (match["plural"] or "")


def _dotted(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    if len(parts) == 4 and all(int(part) < 256 for part in parts):  # an internet address
        return " dot ".join(digits(part) for part in parts)
    return " point ".join(amount(part) for part in parts)


def _version(match: re.Match[str]) -> str:
    return "version " + " point ".join(amount(part) for part in match[1].split("."))


def _number(match: re.Match[str]) -> str:
    return _FAMILIAR.get(match[0]) or plain(match[0])


LONG: tuple[Rule, ...] = (
    rule(
        r"(?P<point>)(?<![\d,])(?P<digits>\d{1,3}(?:,\d{3}){12,})(?!\d)",
        lambda match: digits(match["digits"]),
    ),
    rule(rf"(?P<point>(?<=\d)\.)?(?<!\d)(?P<digits>\d{{{LONGEST + 1},}})", _too_long),
)
PHONES: tuple[Rule, ...] = (
    rule(START + r"(?:\+?1[-. ])?(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-.]\d{4}(?![-/\d])", _groups),
    rule(START + r"(?:\+?1 )?\d{3} \d{3} \d{4}(?![-/\d])", _groups),
    rule(r"(?<![\w+])\+\d{1,3}(?:[-. ]?\(?\d{1,5}\)?){2,6}(?![\d%])", _groups),
    rule(START + r"\d{3}-\d{4}(?![-/\d])", _groups),
    rule(START + r"1-\d{3}(?=-[A-Z])", _groups),
    rule(START + r"(?<![A-Za-z]-)\d{1,5}(?:-\d{1,6}){2,5}(?![-/\d])", _groups),
    rule(r"\b([A-Z]{2}) (\d{5}(?:-\d{4})?)(?![-.,]?\d)", _zip_code),
)
# These leave the numbers as they are and say what is between them.
BETWEEN: tuple[Rule, ...] = (
    rule(
        rf"(?<![\w.,-])({_MONEY}?\d[\d,.:/]{{0,20}}(?:[%°kKmMbB]|{_NOON}|st|nd|rd|th|s)?){DASH}"
        rf"(?={_MONEY}?\d(?P<fraction>\d{{0,3}}/\d)?(?P<sum>[\d,.]{{0,20}} ?=)?)",
        _range,
    ),
    rule(
        rf"(?:(?<=thousand)|(?<=[bm]illion)|(?<=percent)|(?<=noon)|(?<=midnight)){DASH}"
        rf"(?={_MONEY}?\d)|(?:(?<=\d)|(?<=\d[ap]m)){DASH}(?=(?:noon|midnight|present|now)\b)",
        "to",
    ),
    rule(START + rf"({NUMBER} ?(?:mm|cm|m|km|in|ft|yd|px)\.?) ?[x\u00d7] ?(?=\d)", r"\1 by"),
    rule(
        START + rf"(?P<first>{NUMBER}) {DASH} (?=(?P<second>{NUMBER})(?P<sum> ?=)?)",
        _spaced_dash,
    ),
    rule("(?<=\\d) ?\u2212 ?(?=\\d)", "minus"),
    rule("(?<=\\d) ?[*\u00d7] ?(?=\\d)", "times"),
    rule(r"(?<=\d)(?<!\b0) ?x ?(?=\d)", "by"),
    rule("(?<=\\d) ?÷ ?(?=\\d)|(?<=\\d) / (?=\\d)", "divided by"),
    rule("(?<=\\d)[x\u00d7](?!\\w)", "times"),
)
REST: tuple[Rule, ...] = (
    # 12 N. Main Street
    rule(
        rf"(?<=\d )([NESW])(?:\.(?= [A-Z])|(?= [A-Z][a-z]{{1,20}} (?:{_STREETS})\b))",
        from_table(_COMPASS),
    ),
    rule(
        r"(?<![A-Za-z.])((?i:no|nos|p|pp|pg|vol|vols|ch|chap|fig|figs|sec|eq|art|apt|rm|ste|ext|pt|"
        "approx|est)(?=\\.)|(?:ca?|b|d)(?=\\.)|#|§)\\.?\\s?(?=\\d)",
        lambda match: _NUMBERED[match[1].lower()],
    ),
    rule(
        START + r"(?:(?P<whole>\d{1,4})[ -])?(?P<top>\d{1,4})/(?P<bottom>\d{1,4})(?![/\d])",
        _fraction,
    ),
    rule(
        r"(?<!\d)(?<!\d[.,])(?P<number>\d{1,3}(?:,\d{3}){1,11}|\d{1,36})"
        r"(?i:st|nd|rd|th)(?P<plural>s)?\b",
        _ordinal,
    ),
    rule(
        START + r"(\d{1,4}):(\d{1,4})(?![:\d])",
        lambda match: f"{amount(match[1])} to {amount(match[2])}",
    ),
    rule(r"\bv\.?\s?(\d{1,9}(?:\.\d{1,9}){0,4})(?!\.?\d)", _version),
    rule(START + r"\d{1,9}(?:\.\d{1,9}){2,5}(?!\.?\d)", _dotted),
    # An en dash behind a number is a range, with whatever spaces.
    rule(rf"(?<![\w.,)\]])(?:{MINUS}|(?<!\d )\u2013)(?=\.?\d)", "minus"),
    rule(r"(?<![\d.,])'?(\d{1,4})s\b", lambda match: plural(plain(match[1]))),
    rule(rf"(?<!\d)(?:(?<!\w)|(?!\.)){NUMBER}", _number),
)
