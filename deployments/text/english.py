"""Written English as English words, for models that were trained on spelled-out text.

The order of the steps: markup; characters; addresses; everything with a digit or a sign;
then only letters and punctuation are left, and abbreviations and capitals are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from deployments.text import (
    abbreviations,
    characters,
    dates,
    figures,
    letters,
    markup,
    money,
    punctuation,
    symbols,
    units,
    web,
)
from deployments.text.rules import rewrite

_COMPOSED = (*web.RULES, *symbols.COMPOSED, *abbreviations.WARS, *dates.WITHOUT_DIGITS)
_DIGITS = (
    *figures.LONG,
    *dates.IN_DIGITS,
    *figures.PHONES,
    *money.RANGES,
    *figures.BETWEEN,
    *dates.TIMES,
    *dates.WITH_NAMES,
    *money.AMOUNTS,
    *units.RULES,
    *symbols.AT_NUMBERS,
    *figures.REST,
)
_SIGNS = (*symbols.NAMED, *abbreviations.DOTTED)
_WORDS = (*letters.MIXED, *abbreviations.RULES, *letters.RULES)


@dataclass(frozen=True, slots=True)
class Normalized:
    """A text in words, and what of it there are no words for.

    Attributes:
        text: letters A to Z and a to z, spaces and ``' , . ? !``; empty if nothing of the
            original can be spoken.
        unspeakable: words in other scripts and the like, each once, in order.
    """

    text: str
    unspeakable: tuple[str, ...]


def normalize(text: str) -> str:
    """``Dr. Smith paid $4.50`` -> Doctor Smith paid four dollars and fifty cents.

    Never fails, and leaves its own output as it is.
    """
    return normalize_with_report(text).text


def normalize_with_report(text: str) -> Normalized:
    """As ``normalize``, with what had to be left out."""
    plain = characters.plain(markup.plain(text))
    spoken = _spoken(plain.text)
    if not spoken and not plain.unspeakable:
        spoken = _spoken(characters.pictures(text))
    return Normalized(spoken, plain.unspeakable)


def _spoken(text: str) -> str:
    text = rewrite(re.sub(r"\s+", " ", text).strip(), _COMPOSED)
    if any(map(str.isdigit, text)):
        text = rewrite(units.mark_inches(text), _DIGITS)
    text = punctuation.plain(rewrite(text, _SIGNS))
    return punctuation.tidy(rewrite(text, _WORDS))
