"""Utterances of a text that arrives in pieces, as early as they are certain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployments.text.borders import LOOK_AHEAD, Border, Strength, borders
from deployments.text.graphemes import safe_place
from deployments.text.splitting import Span, Utterance, short, split, utterance, whole_markup

_WIDEST_GAP = 64  # characters of white space that are kept of a longer row
_WIDE_GAP = re.compile(rf"(\s{{{_WIDEST_GAP}}})\s+")


class TextStream:
    """Cuts a text into utterances while it arrives.

    Which utterances there are does not depend on where the pieces begin and end. Joined, they
    are the text but for white space; none is blank or longer than ``max_characters``. A
    sentence is given as soon as what follows shows that it has ended. The first utterance may
    end with a clause.
    """

    def __init__(self, max_characters: int, first_characters: int) -> None:
        """
        Args:
            max_characters: of an utterance.
            first_characters: the first utterance is cut where it can be once it has as many.

        Raises:
            ValueError: one of them is not positive.
        """
        if min(max_characters, first_characters) < 1:
            raise ValueError("max_characters and first_characters must be at least 1")
        self._max = max_characters
        self._first: int | None = first_characters  # None: the first has been given
        self._text = ""
        self._fence = ""
        # So much of the text is enough to say where an utterance ends.
        self._window = max_characters + whole_markup(max_characters) + _WIDEST_GAP + LOOK_AHEAD

    def push(self, piece: str) -> list[Utterance]:
        """Takes the next piece of the text and returns the utterances that are certain now."""
        known = len(self._text) - _WIDEST_GAP
        recent = self._text[max(0, known) :] + piece
        self._text = self._text[: max(0, known)] + _WIDE_GAP.sub(r"\1", recent)
        return list(self._certain())

    def flush(self) -> list[Utterance]:
        """The utterances of all that is left; the text is taken to end here.

        More may be pushed afterwards. An utterance may have nothing to speak if only signs
        were left.
        """
        utterances = split(self._text, self._max, fence=self._fence)
        if utterances:
            self._first = None
        self._text = ""
        self._fence = ""
        return utterances

    def _certain(self) -> Iterator[Utterance]:
        start = len(self._text) - len(self._text.lstrip())
        while border := self._next(text := self._text[start : start + self._window]):
            yield utterance(text, Span(0, border.end, border.strength))
            self._first = None
            self._fence = border.fence
            start += border.start
        self._text = self._text[start:]

    def _next(self, text: str) -> Border | None:
        """Where the next utterance ends, or None if that is not certain."""
        first_word = next((place for place, c in enumerate(text) if c.isalnum()), len(text))
        passed: list[Border] = []
        whole = whole_markup(self._max)
        for border in borders(text, whole=whole, complete=False, fence=self._fence):
            if border.end > self._max:
                return self._forced(text, passed, first_word)
            if border.strength is Strength.UNSEEN:
                return None
            if border.end > first_word and self._suffices(text[: border.end], border.strength):
                return border
            passed.append(border)
        return None

    def _suffices(self, text: str, strength: Strength) -> bool:
        early = self._first is not None and len(text) >= self._first
        if strength >= Strength.SENTENCE:
            return early or not short(text)
        return early and strength is Strength.CLAUSE

    def _forced(self, text: str, passed: list[Border], first_word: int) -> Border:
        """Where to cut a text that is too long: not in its first third if that can be had."""
        spoken = [border for border in passed if border.end > first_word] or passed
        late = [border for border in spoken if 3 * border.end >= self._max] or spoken
        if late:
            return max(late, key=lambda border: (border.strength, border.end))
        place = safe_place(text, self._max, 1, self._max)
        before, after = text[:place].rstrip(), text[place:].lstrip()
        return Border(len(before), len(text) - len(after), Strength.TIGHT, self._fence)
