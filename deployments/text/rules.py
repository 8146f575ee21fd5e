"""Rewriting by rules: a pattern, and what is said where it matches.

A pattern looks at a bounded stretch of text from wherever it starts. Runs of digits are cut
to ``numbers.LONGEST`` and white space to single spaces before any rule is applied, so a
rule takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

Say = Callable[[re.Match[str]], str | None]

# A written number, and a place where one can begin that is no part of another.
NUMBER = r"(?:(?:\d{1,3}(?:,\d{3}){1,11}(?!\d)|\d{1,36})(?:\.\d{1,36})?|\.\d{1,36})"
START = r"(?<![\d.])(?<!\d[,/:-])"
DASH = "[-\u2013]"  # a hyphen or an en dash
MINUS = "[-\u2212]"  # a hyphen or a minus sign
# The full stop of an abbreviation: gone, unless it also ends the sentence.
STOP = r"(?:\.(?!\s*$|\s+[\"'(]?[A-Z]))?"
_ATTACHED = (" ", "'", ".", ",", "?", "!")  # no space in front of these


class Rule(NamedTuple):
    """Replaces each match by what ``say`` returns, as words of their own.

    ``say`` may return None: this match is not what the rule is about.
    """

    pattern: re.Pattern[str]
    say: Say


def rule(pattern: str, say: Say | str) -> Rule:
    """A rule; a string for ``say`` is a template as of ``re.Match.expand``."""
    if isinstance(say, str):
        template = say
        return Rule(re.compile(pattern), lambda match: match.expand(template))
    return Rule(re.compile(pattern), say)


def rewrite(text: str, rules: Iterable[Rule]) -> str:
    """Applies the rules one after another."""
    for pattern, say in rules:
        text = pattern.sub(_replacement(say), text)
    return text


def words(text: str) -> list[str]:
    """A list that is written as running text."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """A set that is written as running text."""
    return frozenset(text.split())


def one_of(alternatives: Iterable[str]) -> str:
    """A pattern for any of them, the longest first."""
    return "|".join(re.escape(word) for word in sorted(alternatives, key=len, reverse=True))


def from_table(table: Mapping[str, str]) -> Say:
    """Says what the table has for group 1."""
    return lambda match: table[match[1]]


def word_before(match: re.Match[str]) -> str:
    """The word in front of a match on the same side of a mark; empty if there is none."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    word = re.search(r"([A-Za-z']+) ?$", before)
    return word[1] if word else ""


def _replacement(say: Say) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        spoken = say(match)
        if spoken is None:
            return match[0]
        before = match.string[match.start() - 1 : match.start()]
        after = match.string[match.end() : match.end() + 1]
        return f"{'' if before == ' ' else ' '}{spoken}{'' if after in _ATTACHED else ' '}"

    return replace
