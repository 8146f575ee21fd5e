"""Where a text can be cut: borders between paragraphs, sentences, clauses and words.

Borders are found from left to right, each from a bounded stretch around it. So they can be
found in a text that is still arriving: what is certain about a part of a text does not change
when more of it comes. Any language; abbreviations are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from deployments.text import markup_spans
from deployments.text.abbreviations import BEFORE_NAMES, SOMETIMES_LAST
from deployments.text.rules import word_set


class Strength(IntEnum):
    """How much a border separates.

    ``UNSEEN`` is none: what is there depends on text that has not arrived. ``TIGHT`` is a
    space inside a number, behind an abbreviation, or next to a mark.
    """

    UNSEEN = -1
    TIGHT = 0
    WORD = 1
    CLAUSE = 2
    SENTENCE = 3
    PARAGRAPH = 4


class Border(NamedTuple):
    """What is in front of it ends at ``end``; what is behind begins at ``start``.

    Between the two is only white space. ``fence`` is the mark of the fenced code the border
    is in, empty outside.
    """

    end: int
    start: int
    strength: Strength
    fence: str = ""


_QUOTES = "\"'\u201c\u201d\u2018\u2019»«\u203a\u2039"
_BRACKETS = ")]}\uff09】》」』"
_CLOSING = _QUOTES + _BRACKETS + "*_~`"
# Those that cannot also begin something.
_SURELY_CLOSING = "\u201d\u2019»\u203a" + _BRACKETS
_OPENING = _QUOTES + "([{*_~`¿¡"
_WIDE_ENDS = "\u3002\uff01\uff1f\uff61"
_ENDS = "!?\u203d؟\u06d4।॥" + _WIDE_ENDS
_WIDE_PAUSES = "\uff0c\u3001\uff1b\uff1a"
_PAUSES = ",;:،؛" + _WIDE_PAUSES
_DASHES = "-\u2013\u2014"
# A space in front of one of these does not separate it from what it belongs to.
_LEANING = frozenset("!?.,;:%…)]}»\uff01\uff1f" + _WIDE_PAUSES)
_MONEY = frozenset("$£€¥")
_OPERATORS = frozenset("+*/=<>^&|\u00d7÷\u2212")
_TOKEN = re.compile(
    rf"(?P<gap>\s+)|(?P<end>[{_WIDE_ENDS}]{{1,16}}[{re.escape(_SURELY_CLOSING)}]{{0,16}})|"
    rf"(?P<pause>[{_WIDE_PAUSES}\u2014…]{{1,16}}[{re.escape(_SURELY_CLOSING)}]{{0,16}})|"
    rf"(?P<joint>\u200b{{1,16}})|"
    rf"(?P<mark>{markup_spans.MARK})"
)
_GAP = re.compile(r"\s+")
_LINE_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028]")
_BEHIND = 40  # characters that are looked at in front of a border,
_AHEAD = 16  # and behind it
_LINE = 200  # of the line before
# Behind a gap or the end of a piece of markup at most so many characters are looked at.
LOOK_AHEAD = 64

# Lines that begin something new, and the shortest beginnings that could still become one.
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s|#{1,6}\s|\||```|~~~")
_PERHAPS_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)]?|#{1,6}|`{1,2}|~{1,2})\Z")
_WHOLE_LINE = re.compile(r"[ \t]*(?:#{1,6}\s|\||```|~~~)")
_ITEM_MARK = re.compile(r"(?:\A|[\n\r])[ \t]*(?:[-*+•]|#{1,6}|>+|\d{1,3}[.)])\Z")
_DASH_WORD = re.compile(rf"(\S)\s+[{_DASHES}]+\Z")

_LETTER = r"[^\W\d_]"
_WORD_AT_END = re.compile(rf"{_LETTER}+\Z")
_INITIAL = re.compile(rf"(?:\A|[\s{re.escape(_OPENING)}.-]){_LETTER}\Z")
_DOTTED = re.compile(rf"(?:\A|[^\w.])(?:{_LETTER}{{1,3}}\.){{1,12}}{_LETTER}{{1,3}}\Z")
_WORD_AHEAD = re.compile(rf"[{re.escape(_OPENING)}]*([A-Za-z']*)")
_BEFORE_NUMBERS = word_set(
    "No Nos no nos pp vol Vol ch Ch sec Sec fig Fig Figs figs eq Eq art Art "
    "apt Apt ext Ext tel Tel Rs"
)
_UNIT = re.compile(rf"\d[ -]?{_LETTER}{{1,3}}\Z")  # perhaps, as in "5 in. long"
# A stop behind an abbreviation or an initial ends the sentence in front of these.
_FIRST_WORDS = word_set(
    "A After All Also An And Any As At Because Before But By Can Could Did Do Does Each Everyone "
    "For From Had Has Have He Her Here His How However I I'd I'll I'm I've If In Is It It's Its "
    "Let Let's Many More Most My Next No Nobody Not Now On Once One Only Or Our Please She Should "
    "Since So Some Someone Soon That That's The Their Then There There's These They They're This "
    "Those To Today Tomorrow Was We We're Were What What's When Where Which While Who Why Will "
    "With Would Yes Yesterday Yet You You're Your"
)


def borders(text: str, *, whole: int, complete: bool = True, fence: str = "") -> Iterator[Border]:
    """The borders of a text from left to right; none at its ends.

    Args:
        text: begins with a character that is no white space.
        whole: a piece of markup of at most this many characters (a link, emphasis, code)
            has no borders inside.
        complete: False if more text may come. Then the last border is ``UNSEEN``: every
            border whose ``end`` is less has been given.
        fence: the mark of the fenced code in which the text begins, if it does.
    """
    place = 0
    opening = False  # in the line that opens a fence
    while token := (_GAP if fence else _TOKEN).search(text, place):
        begin, place = token.span()
        kind = token.lastgroup or "gap"
        if place == len(text) and not complete:
            yield Border(begin, begin, Strength.UNSEEN)
            return
        if kind == "mark":
            behind = markup_spans.behind(text, begin, token[0], begin + whole, complete)
            if behind is None:
                yield Border(begin, begin, Strength.UNSEEN)
                return
            if behind == place and markup_spans.opens_fence(text, begin, token[0]):
                fence, opening = token[0][:3], True
            place = behind
            continue
        if place == len(text):
            return
        if fence:
            strength, place, fence = _in_fence(text, begin, place, fence, opening, complete)
            opening = opening and not _LINE_BREAK.search(token[0])
        elif kind == "gap":
            strength = _strength(text, begin, place, complete)
        else:
            strength = _unspaced(text, kind, begin, place)
        if strength is Strength.UNSEEN:
            yield Border(begin, begin, Strength.UNSEEN)
            return
        if strength is not None:
            end = begin if kind == "gap" else token.end()
            yield Border(end, token.end(), strength, fence)
    if not complete:
        yield Border(len(text), len(text), Strength.UNSEEN)


def _in_fence(
    text: str, end: int, start: int, fence: str, opening: bool, complete: bool
) -> tuple[Strength | None, int, str]:
    """The border at a gap in fenced code, where to go on, and the fence after the gap.

    Lines are separate; the marks stay with the code.
    """
    if not _LINE_BREAK.search(text, end, start):
        return (None if opening else Strength.WORD), start, fence
    closing = re.compile(rf"{fence[0]}{{3,16}}").match(text, start)
    if not complete and (closing.end() == len(text) if closing else len(text) - start < len(fence)):
        return Strength.UNSEEN, start, fence
    if closing:
        return None, closing.end(), ""
    return (None if opening else Strength.SENTENCE), start, fence


def _unspaced(text: str, kind: str, begin: int, end: int) -> Strength | None:
    """The border behind marks that need no space; a gap behind them has its own."""
    if text[end].isspace():
        return None
    if kind == "end":
        return Strength.SENTENCE
    if kind == "joint":
        return Strength.WORD
    between_digits = text[begin - 1 : begin].isdigit() and text[end].isdigit()
    return Strength.TIGHT if between_digits else Strength.CLAUSE


def _strength(text: str, end: int, start: int, complete: bool) -> Strength:
    """Of the gap ``text[end:start]``, behind which there is more text."""
    if start - end == 1 and text[end] == " " and text[end - 1].isalpha() and text[start].isalpha():
        return Strength.WORD
    ahead = text[start : start + _AHEAD]
    complete = complete or len(ahead) == _AHEAD
    gap = text[end:start]
    breaks = len(_LINE_BREAK.findall(gap))
    if breaks > 1 or "\u2029" in gap:
        return Strength.PARAGRAPH
    if breaks:
        if not complete and _PERHAPS_ITEM.match(ahead):
            return Strength.UNSEEN
        line = text[text.rfind("\n", max(0, end - _LINE), end) + 1 : end]
        if _ITEM.match(ahead) or _WHOLE_LINE.match(line):
            return Strength.SENTENCE
    before = text[max(0, end - _BEHIND) : end]
    return _marked(before, ahead, complete)


def _marked(before: str, ahead: str, complete: bool) -> Strength:
    """Of a gap that is no more than a space, from what is written on its two sides."""
    if _ITEM_MARK.search(before):
        return Strength.TIGHT
    text = before.rstrip(_CLOSING)
    closing = before[len(text) :]
    mark = text[-1:]
    if mark in ("…", ".") or (mark and mark in _ENDS):
        small = _begins_small(ahead, complete)
        if small is None:
            return Strength.UNSEEN
        if small and (closing or mark == "…" or text.endswith("..")):
            return Strength.CLAUSE
        if mark == "." and not text.endswith(".."):
            return _behind_stop(text[:-1], ahead, complete)
        return Strength.SENTENCE
    if ahead[0] in _OPERATORS and len(ahead) == 1 and not complete:
        return Strength.UNSEEN
    if ahead[:2].strip() in _OPERATORS or before[-2:].strip() in _OPERATORS:
        return Strength.TIGHT
    in_digits = ahead[0].isdigit()
    if (mark and mark in _PAUSES) or any(bracket in closing for bracket in _BRACKETS):
        inside = in_digits and any(map(str.isdigit, text[-2:]))
        return Strength.TIGHT if inside else Strength.CLAUSE
    if dash := _DASH_WORD.search(before):
        return Strength.TIGHT if in_digits and dash[1].isdigit() else Strength.CLAUSE
    if mark == "\u2014":
        return Strength.CLAUSE
    tight = in_digits or mark.isdigit() or ahead[0] in _LEANING or ahead[0] in _MONEY
    return Strength.TIGHT if tight else Strength.WORD


def _begins_small(ahead: str, complete: bool) -> bool | None:
    """Whether the text begins with a small letter; None if that is not there yet."""
    letters = ahead.lstrip(_OPENING)
    if not letters and not complete:
        return None
    return letters[:1].islower()


def _behind_stop(before: str, ahead: str, complete: bool) -> Strength:
    """Whether the full stop behind a text ends a sentence."""
    match = _WORD_AT_END.search(before)
    if match is None:
        return Strength.SENTENCE
    word = match[0]
    if word in BEFORE_NAMES or (word in _BEFORE_NUMBERS and ahead[0].isdigit()):
        return Strength.TIGHT
    if _UNIT.search(before) and not ahead.lstrip(_OPENING)[:1].isupper():
        return Strength.TIGHT
    if not (word in SOMETIMES_LAST or _INITIAL.search(before) or _DOTTED.search(before)):
        return Strength.SENTENCE
    following = _WORD_AHEAD.match(ahead)
    assert following is not None  # it matches nothing, too
    if following.end() == len(ahead) and not complete:
        return Strength.UNSEEN
    pronoun = word == "I" and not before.endswith(".I") and following[1][:1].isupper()
    return Strength.SENTENCE if pronoun or following[1] in _FIRST_WORDS else Strength.TIGHT
