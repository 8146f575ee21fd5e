"""Places inside a word where a reader would see no character fall apart."""

from __future__ import annotations

import unicodedata
from itertools import chain

_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_JOINER = "\u200d"
_VIRAMA = 9  # the combining class of signs that join two letters of an Indic script


def safe_place(text: str, near: int, first: int, last: int) -> int:
    """The place from ``first`` to ``last`` that is the nearest in front of ``near``, or the
    first behind it, where no character is torn; ``near`` if there is none.

    Nothing is torn at ``first - 1``. Torn would be a letter and its accents, the parts of an
    emoji, a flag, a syllable of Hangul, a surrogate pair, CR LF.
    """
    places = chain(range(near, first - 1, -1), range(near + 1, last + 1))
    return next((place for place in places if not torn(text, place, first - 1)), near)


def torn(text: str, place: int, begin: int = 0) -> bool:
    """Whether one visible character is on both sides of a place inside ``text[begin:]``."""
    before, after = text[place - 1], text[place]
    if after < "\u0300":
        return before + after == "\r\n" or before == _JOINER
    if after in _FLAG_LETTERS:
        return before in _FLAG_LETTERS and _flag_letters(text[begin:place]) % 2 == 1
    return (
        before == _JOINER
        or _attaches(after)
        or (unicodedata.combining(before) == _VIRAMA and after.isalpha())
        or (_is_leading(before) and (_is_leading(after) or "\uac00" <= after <= "\ud7a3"))
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


def _attaches(character: str) -> bool:
    return (
        unicodedata.category(character)[0] == "M"
        or character in "\u200c\u200d\uff9e\uff9f"
        or "\u1160" <= character <= "\u11ff"  # vowels and finals of Hangul
        or "\ud7b0" <= character <= "\ud7ff"
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # tones of skin
        or "\U000e0020" <= character <= "\U000e007f"  # tags, in flags of regions
    )


def _is_leading(character: str) -> bool:
    return "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97f"


def _flag_letters(text: str) -> int:
    """How many letters of flags a text ends with; each two are one flag."""
    return len(text) - len(text.rstrip(_FLAG_LETTERS))
