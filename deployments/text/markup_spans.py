"""Pieces of Markdown and HTML that are read as a whole: links, emphasis, code, tags.

Found in a text that may still be arriving, by looking a bounded number of characters ahead.
"""

from __future__ import annotations

import re

# What can begin such a piece.
MARK = r"!?\[|<|`{1,8}|\*{1,8}|_{1,8}|~{2,8}"

_BLANK_LINE = r"(?P<blank>\n[ \t\r]*\n)"


def _closing(pattern: str) -> re.Pattern[str]:
    """Finds an end in the same paragraph, or the end of the paragraph."""
    return re.compile(rf"{_BLANK_LINE}|{pattern}")


# The end of emphasis and code by the mark that begins it. Longer rows of a mark are no markup.
_CLOSINGS = {
    **{"`" * size: _closing(rf"(?<!`)`{{{size}}}(?!`)") for size in (1, 2, 3)},
    **{
        mark * size: _closing(rf"(?<![\s{mark}]){re.escape(mark * size)}(?![\w{mark}])")
        for mark in "*_"
        for size in (1, 2, 3)
    },
    "~~": _closing(r"(?<![\s~])~~(?!~)"),
}
_BRACKET, _PARENTHESIS = _closing(r"\]"), _closing(r"\)")
_TAG = _closing(">|(?P<other>(?=<))")
_COMMENT = re.compile("-->")
_FENCES = {mark: re.compile(rf"\n[ \t]{{0,3}}{mark}{{3,}}(?=[ \t]*(?:\n|\Z))") for mark in "`~"}
_LINE_START = re.compile(r"(?:\A|[\n\r])[ \t]{0,3}\Z")


def opens_fence(text: str, start: int, mark: str) -> bool:
    """Whether a mark is a row of three or more at the beginning of a line."""
    is_row = mark[0] in "`~" and len(mark) > 2
    return is_row and bool(_LINE_START.search(text[max(0, start - 4) : start]))


def behind(text: str, start: int, mark: str, stop: int, complete: bool) -> int | None:
    """The end of the piece that a mark at ``start`` begins, or of the mark if there is none.

    Args:
        mark: what ``MARK`` matched there.
        stop: a piece that would end later is none.
        complete: False if more text may come.

    Returns:
        None if that depends on text that has not arrived.
    """
    end = start + len(mark)
    if end >= len(text):
        return end if complete else None
    if opens_fence(text, start, mark):
        return _find(_FENCES[mark[0]], text, end, stop, complete, end)
    if mark in ("[", "!["):
        bracket = _find(_BRACKET, text, end, stop, complete, end)
        if bracket in (None, end) or text[bracket : bracket + 1] != "(":
            return None if bracket is None else end
        return _find(_PARENTHESIS, text, bracket, stop, complete, end)
    if mark == "<":
        return _behind_angle(text, end, stop, complete)
    before = text[start - 1 : start]
    goes_on = before == mark[0] or (before.isalnum() and mark[0] in "*_")
    if goes_on or (text[end].isspace() and mark[0] != "`") or mark not in _CLOSINGS:
        return end
    return _find(_CLOSINGS[mark], text, end, stop, complete, end)


def _behind_angle(text: str, end: int, stop: int, complete: bool) -> int | None:
    opening = text[end : end + 3]
    if opening == "!--":
        return _find(_COMMENT, text, end, stop, complete, end)
    if not complete and "!--".startswith(opening):
        return None
    if not (opening[0].isalpha() or opening[0] == "/"):
        return end
    return _find(_TAG, text, end, stop, complete, end)


def _find(
    closing: re.Pattern[str], text: str, begin: int, stop: int, complete: bool, otherwise: int
) -> int | None:
    """The end of a match from ``begin`` to ``stop``; ``otherwise`` if there can be none."""
    match = closing.search(text, begin, stop)
    if match is None:
        return otherwise if complete or len(text) >= stop else None
    if match.lastgroup is not None:
        return otherwise
    if not complete and len(text) < stop and not text[match.end() :].strip():
        return None  # what follows could show that it is no end
    return match.end()
