"""Cutting a text into utterances: stretches that a model speaks well in one go."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from deployments.text.borders import Border, Strength, borders
from deployments.text.graphemes import safe_place

SHORT = 20  # characters; models speak less than this badly on its own
MARKUP = 200  # characters; a piece of markup up to this long is not cut


class Pause(float, Enum):
    """Seconds of silence behind an utterance, by what it ends with."""

    WORD = 0.0
    CLAUSE = 0.1
    SENTENCE = 0.25
    PARAGRAPH = 0.5


class Utterance(NamedTuple):
    """A stretch of a text that is spoken in one go, without white space at its ends.

    The last of a text has the pause of a sentence.
    """

    text: str
    pause: Pause


class Span(NamedTuple):
    """Where an utterance stands in a text, and the border behind it."""

    start: int
    end: int
    strength: Strength


_PAUSES = {
    Strength.TIGHT: Pause.WORD,
    Strength.WORD: Pause.WORD,
    Strength.CLAUSE: Pause.CLAUSE,
    Strength.SENTENCE: Pause.SENTENCE,
    Strength.PARAGRAPH: Pause.PARAGRAPH,
}


def speakable(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def short(text: str) -> bool:
    """Whether so little text is better not spoken alone."""
    return len(text) < SHORT and len(text) + 2 * sum(map(_is_wide, text)) < SHORT


def _is_wide(character: str) -> bool:
    """Whether a character takes as long to speak as about three Latin letters."""
    return character >= "\u2e80" and character.isalnum()


def whole_markup(max_characters: int) -> int:
    """Up to how many characters a piece of markup stays whole."""
    return min(MARKUP, max_characters)


def utterance(text: str, span: Span) -> Utterance:
    """The utterance at a place of a text."""
    return Utterance(text[span.start : span.end], _PAUSES[span.strength])


def split(text: str, max_characters: int, *, fence: str = "") -> list[Utterance]:
    """The utterances of a text, in order.

    Joined, they are the text but for white space. None is blank or longer than
    ``max_characters``. Sentences are apart, but a short one is with a neighbour where there
    is room. A sentence that is too long is cut into parts of like length: between clauses,
    else between words, else between characters. An utterance is ``speakable`` if the text is
    and no stretch without letters and digits is half as long as an utterance may be.

    Args:
        text: any text; one without anything but white space has no utterances.
        fence: the mark of the fenced code in which the text begins, if it does.

    Raises:
        ValueError: ``max_characters`` is not positive.
    """
    if max_characters < 1:
        raise ValueError("max_characters must be at least 1")
    text = text.strip()
    if not text:
        return []
    cutter = _Cutter(text, max_characters, fence)
    sentences = _join(cutter.sentences(), lambda s: not cutter.speakable(s.start, s.end), len(text))
    parts = [part for sentence in sentences for part in cutter.parts(sentence)]
    spans = _join(parts, cutter.poor, max_characters)
    return [utterance(text, span) for span in spans]


def rewritten(original: Utterance, text: str, max_characters: int) -> list[Utterance]:
    """What an utterance becomes whose text is written out in words, which may be too long.

    Args:
        text: the words, as ``english.normalize`` gives them; without any there is nothing to
            speak, and no utterance.
    """
    if len(text) <= max_characters and speakable(text):
        return [Utterance(text, original.pause)]
    parts = split(text, max_characters) if speakable(text) else []
    return [*parts[:-1], *(last._replace(pause=original.pause) for last in parts[-1:])]


class _Cutter:
    """One text with its borders."""

    def __init__(self, text: str, max_characters: int, fence: str) -> None:
        self._text = text
        self._max = max_characters
        # How many letters and digits there are in front of a place.
        self._spoken = [0, *accumulate(map(str.isalnum, text))]
        self._borders: dict[Strength, list[Border]] = {s: [] for s in sorted(_PAUSES, reverse=True)}
        for border in borders(text, whole=whole_markup(max_characters), fence=fence):
            self._borders[border.strength].append(border)

    def speakable(self, start: int, end: int) -> bool:
        return self._spoken[start] < self._spoken[end]

    def poor(self, span: Span) -> bool:
        """Whether a span should not be alone."""
        return short(self._text[span.start : span.end]) or not self.speakable(span.start, span.end)

    def sentences(self) -> list[Span]:
        ends = sorted(self._borders[Strength.PARAGRAPH] + self._borders[Strength.SENTENCE])
        starts = [0, *(border.start for border in ends)]
        last = Border(len(self._text), len(self._text), Strength.SENTENCE)
        return [
            Span(start, border.end, border.strength)
            for start, border in zip(starts, [*ends, last], strict=True)
        ]

    def parts(self, span: Span) -> list[Span]:
        """A span, in parts that are short enough."""
        parts: list[Span] = []
        waiting = [span]
        while waiting:
            start, end, strength = waiting.pop()
            if end - start <= self._max:
                parts.append(Span(start, end, strength))
            else:
                cut = self._cut(start, end)
                waiting.append(Span(cut.start, end, strength))
                waiting.append(Span(start, cut.end, cut.strength))
        return parts

    def _cut(self, start: int, end: int) -> Border:
        """Where to cut what is too long: into two of which each has something to speak, near
        the place that leaves parts of equal length."""
        first, last = self._speakable_cuts(start, end)
        count = math.ceil((end - start) / self._max)
        target = start + (end - start) * (count // 2) // count
        target = min(max(target, first), last)
        reach = (end - start) // (2 * count)
        for some in self._borders.values():
            if near := _nearest(
                some, target, max(first, target - reach), min(last, target + reach)
            ):
                return near
        found = [_nearest(some, target, first, last) for some in self._borders.values()]
        anywhere = [border for border in found if border]
        if anywhere:
            return min(anywhere, key=lambda border: abs(border.start - target))
        place = safe_place(self._text, target, first, last)
        before, after = self._text[start:place].rstrip(), self._text[place:end].lstrip()
        return Border(start + len(before), end - len(after), Strength.TIGHT)

    def _speakable_cuts(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last place with letters or digits on both sides, or at least text."""
        if self._spoken[end] - self._spoken[start] < 2:
            return start + 1, end - 1
        first = bisect_right(self._spoken, self._spoken[start], start, end)
        last = bisect_left(self._spoken, self._spoken[end], start, end) - 1
        return first, last


def _nearest(some: list[Border], target: int, first: int, last: int) -> Border | None:
    """Of borders in order, the one nearest to the target that lies within the two places."""
    place = bisect_left(some, target, key=lambda border: border.start)
    near = some[max(0, place - 1) : place + 1]
    inside = [border for border in near if first <= border.end and border.start <= last]
    return min(inside, key=lambda border: abs(border.start - target), default=None)


def _join(spans: list[Span], poor: Callable[[Span], bool], limit: int) -> list[Span]:
    """Joins what is poor to a neighbour, across the weaker of its borders, else the next.

    Only where both together have at most ``limit`` characters.
    """
    joined: list[Span] = []
    for place, span in enumerate(spans):
        following = spans[place + 1] if place + 1 < len(spans) else None
        if joined and span.end - joined[-1].start <= limit:
            forward = (
                following is not None
                and following.end - span.start <= limit
                and span.strength <= joined[-1].strength
            )
            if poor(joined[-1]) or (poor(span) and not forward):
                joined[-1] = span._replace(start=joined[-1].start)
                continue
        joined.append(span)
    return joined
