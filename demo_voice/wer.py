"""Word errors of a transcript, counted so that only what was heard matters, not how it is written.

A recogniser writes as its language model was taught: ``ok`` or ``okay``, ``some one`` or
``someone``, ``p.m.`` or ``p m``. Such pairs count as right, for every source of audio alike.
Homophones of another meaning (``their``, ``there``) count as errors, as is usual.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from deployments.text.english import normalize

SAME_WORD = {
    "center": "centre",
    "color": "colour",
    "gray": "grey",
    "mr": "mister",
    "mrs": "missus",
    "ms": "miz",
    "dr": "doctor",
    "neighbor": "neighbour",
    "neighborhood": "neighbourhood",
    "oh": "o",
    "ok": "okay",
    "programed": "programmed",
    "theater": "theatre",
}
"""Spellings of one word, each with the one it is compared as."""

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")


@dataclass(frozen=True)
class Errors:
    """What separates a transcript from its reference; adds up over sentences.

    Attributes:
        words: of the reference.
    """

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    words: int = 0

    @property
    def total(self) -> int:
        """Errors of all three kinds."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors per word of the reference; may exceed 1."""
        return self.total / self.words if self.words else 0.0

    def __add__(self, other: Errors) -> Errors:
        return Errors(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.words + other.words,
        )


def word_errors(text: str, transcript: str) -> Errors:
    """The errors of ``transcript`` as a record of ``text``, whose numbers may be in digits."""
    return align(words(normalize(text)), words(transcript))


def words(spoken: str) -> list[str]:
    """The words of a text without digits: lower case, no punctuation, one spelling each."""
    return [SAME_WORD.get(word, word) for word in _WORD.findall(spoken.lower())]


def align(reference: list[str], transcript: list[str]) -> Errors:
    """The fewest errors that turn ``reference`` into ``transcript``.

    Two words on one side that together are one word on the other are no error.
    """
    # best[j] is (errors, substitutions, deletions, insertions) for the first j words of the
    # transcript and as much of the reference as the loop has come to.
    before: list[tuple[int, int, int, int]] = []
    best = [(j, 0, 0, j) for j in range(len(transcript) + 1)]
    for i, word in enumerate(reference, 1):
        previous, best = best, [(i, 0, i, 0)]
        for j, heard in enumerate(transcript, 1):
            choices = [
                previous[j - 1] if word == heard else _plus(previous[j - 1], (1, 1, 0, 0)),
                _plus(previous[j], (1, 0, 1, 0)),
                _plus(best[j - 1], (1, 0, 0, 1)),
            ]
            if j > 1 and _joined(*transcript[j - 2 : j]) == _joined(word):
                choices.append(previous[j - 2])
            if i > 1 and _joined(*reference[i - 2 : i]) == _joined(heard):
                choices.append(before[j - 1])
            best.append(min(choices))
        before = previous
    _, substitutions, deletions, insertions = best[-1]
    return Errors(substitutions, deletions, insertions, len(reference))


def _plus(
    count: tuple[int, int, int, int], error: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    return (
        count[0] + error[0],
        count[1] + error[1],
        count[2] + error[2],
        count[3] + error[3],
    )


def _joined(*pieces: str) -> str:
    return "".join(pieces).replace("'", "")
