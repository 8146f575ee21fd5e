"""Signs that have a name, and rows of signs that are decoration."""

from __future__ import annotations

import re

from deployments.text.rules import Rule, one_of, rule

# Also the signs of characters.KEPT; the rules before this one may have used them up.
_NAMES = {
    "&": "and",
    "+": "plus",
    "=": "equals",
    "@": "at",
    "%": "percent",
    "#": "hash",
    "$": "dollar",
    "¢": "cent",
    "£": "pound",
    "¥": "yen",
    "§": "section",
    "©": "copyright",
    "°": "degrees",
    "±": "plus or minus",
    "\u00d7": "times",
    "÷": "divided by",
    "\u03a9": "omega",
    "μ": "mu",
    "₩": "won",
    "€": "euro",
    "₹": "rupee",
    "₺": "lira",
    "₽": "ruble",
    "→": "to",
    "\u2212": "minus",
    "√": "square root of",
    "∞": "infinity",
    "≈": "approximately",
    "≠": "is not equal to",
    "≤": "is less than or equal to",
    "≥": "is greater than or equal to",
}
_OPERAND = r"[\w)\]]"
_BASE = r"(?<=[\w)])(?<![A-Za-z]{3})"  # of a power; a small number behind a word is a footnote's


def _spelled_and(match: re.Match[str]) -> str:
    return f"{' '.join(match[1])} and {' '.join(match[2])}"


def _compared(sign: str) -> str:
    """With a space on both sides, or on none and next to a digit or between single letters."""
    return (
        rf"(?<={_OPERAND}) {sign} (?=[\w(-])|(?<=\d){sign}(?=\w)|(?<=\w){sign}(?=\d)|"
        rf"(?<=\b\w){sign}(?=\w\b)"
    )


# Signs made of several, before anything else reads a part of them.
COMPOSED: tuple[Rule, ...] = (
    rule(r"(?<!\S)[:;=8]'?-?[()DPp/\\|]+(?!\S)|(?<!\S)<3(?!\d)", ""),
    rule(r"(?<![-=<])<?[-=]{1,2}>", "→"),
    rule(r"<=", "≤"),
    rule(r">=", "≥"),
    rule(r"!=", "≠"),
    rule(r"([=+#@&%^~_*<>|\\/-])\1{2,}", ""),
    rule(r"==", "="),
    rule(r"_", ""),
    rule(r"(?<!\w)~\s?(?=[$£€]?\d)", "about"),
    rule(r"\+-|\+/-", "±"),
    rule(r"\bC\+\+", "C plus plus"),
    rule(r"\b([CF])#(?!\w)", r"\1 sharp"),
    rule(r"\b([A-Z]{1,4})&([A-Z]{1,4})\b", _spelled_and),
    rule(r"\b([A-Za-z]{1,30})\(s\)", r"\1s"),
    rule(r"\(\)", ""),
    rule(_compared("<"), "is less than"),
    rule(_compared(">"), "is greater than"),
)
# Those whose meaning depends on the number they touch.
AT_NUMBERS: tuple[Rule, ...] = (
    rule(rf"{_BASE}\^2(?!\d)", "squared"),
    rule(rf"{_BASE}\^3(?!\d)", "cubed"),
    rule(rf"{_BASE}\^(?=-?\d)", "to the power of"),
    rule(r"(?<=[A-Za-z])-(?=\w)|(?<=\d)-(?=[A-Za-z])", ""),
)
NAMED: tuple[Rule, ...] = (
    rule(r"#(?=[A-Za-z])", "hashtag"),
    rule(r"(?<=[\w)\]]) \* (?=[\w(])", "times"),
    rule(r"(?<=\b\w) / (?=\w\b)", "divided by"),
    rule(r"(?i:\b(and)/(or)\b)", r"\1 \2"),
    rule(r"\bw/o\b", "without"),
    rule(r"\bw/", "with"),
    rule(r"(?<=\w)/(?=\w)|(?<![\w/])/(?=\w)|(?<=\w) ?/(?= )", "slash"),
    rule(r"\\(?=\w)", "backslash"),
    rule(one_of(_NAMES), lambda match: _NAMES[match[0]]),
)
