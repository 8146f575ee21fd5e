"""Only letters, spaces and ``' , . ? !``, set as in ordinary text."""

from __future__ import annotations

import re

_Steps = tuple[tuple[re.Pattern[str], str], ...]


def _steps(*steps: tuple[str, str]) -> _Steps:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in steps)


# Pauses become commas and full stops; every other sign goes.
_PLAIN = _steps(
    (r"(?<=[A-Za-z])\((?=[A-Za-z])", " "),
    (r"\)(?=[\"' ]*[,.?!:;])", ""),
    (r"[:;()\[\]{}|]|(?<= )[-\u2013]+(?= )|--+", ", "),
    (r"[^A-Za-z',.?!]+", " "),
    (r"(?<![A-Za-z])'+|'+(?![A-Za-z])", " "),
    (r" {2,}", " "),
    (r" (?=[,.?!])", ""),
    (r"(?<!\.)\.{2,}(?= ?[a-z])", ", "),
    (r"\.{2,}", "."),
    (r"^[ ,.?!]+| +$", ""),
    (r"([,.?!])(?=[A-Za-z])", r"\1 "),
)
_SPACES = _steps((r" {2,}", " "), (r" (?=[,.?!])", ""))
_MARKS = re.compile("[,.?!]{2,}")
_ENDS = str.maketrans(":;", "..")


def plain(text: str) -> str:
    """Letters, single spaces and marks, the marks as many as there were."""
    from_end = re.search("[A-Za-z]", text[::-1])
    end = len(text) - from_end.start() if from_end else 0
    return _apply(_PLAIN, text[:end] + text[end:].translate(_ENDS))


def tidy(text: str) -> str:
    """One mark at a time, none in front, no comma at the end."""
    return _MARKS.sub(_one_mark, _apply(_SPACES, text)).strip(" ,")


def _one_mark(match: re.Match[str]) -> str:
    """A question, else a call, else a comma before a full stop (of an abbreviation)."""
    return next(mark for mark in "?!,." if mark in match[0])


def _apply(steps: _Steps, text: str) -> str:
    for pattern, replacement in steps:
        text = pattern.sub(replacement, text)
    return text
