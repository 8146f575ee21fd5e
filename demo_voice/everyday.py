"""Sentences from grammars written by hand: templates with slots that are filled at random."""

import random
import re
from functools import cache
from pathlib import Path

GRAMMAR = Path(__file__).parent / "grammar"

_SLOT = re.compile(r"\{(\w+)\}")
_DIGIT = re.compile("[#@]")
# Two letters before the stop, so that "p.m. today" is one sentence.
_NEXT_SENTENCE = re.compile(r"(?<=[\w}]{2}[.?!] )")
# Letters stand for sounds only roughly: "an hour" but "a uniform".
_ARTICLE = re.compile(r"\b(a) (?=(?!on(?:e|ce)\b|uni[a-z]|us[eu]|eu)[aeiou]|hour|honest)", re.I)


class Grammar:
    """Templates, one a line of `templates`, and the fillers of their slots, from `slots`.

    A file of slots holds headings in brackets, each followed by its fillers with semicolons between
    them. A filler may itself hold slots. In either file, # stands for a random digit and @ for one
    that is not zero.
    """

    def __init__(self, templates: Path, slots: Path) -> None:
        self.templates = templates.read_text(encoding="utf-8").splitlines()
        self.slots: dict[str, list[str]] = {}
        for section in slots.read_text(encoding="utf-8").split("[")[1:]:
            name, _, fillers = section.partition("]")
            self.slots[name] = [" ".join(filler.split()) for filler in fillers.split(";")]

    def text(self, rng: random.Random) -> str:
        """Return a random template with every slot filled and its sentences capitalised."""
        sentences = _NEXT_SENTENCE.split(rng.choice(self.templates))
        text = "".join(_capitalized(self._filled(sentence, rng)) for sentence in sentences)
        # A filler that ends in an abbreviation brings a full stop of its own.
        return text.replace("..", ".")

    def _filled(self, text: str, rng: random.Random) -> str:
        while _SLOT.search(text):
            text = _SLOT.sub(lambda slot: rng.choice(self.slots[slot[1]]), text)
        text = _DIGIT.sub(lambda digit: rng.choice("0123456789"[digit[0] == "@" :]), text)
        return _ARTICLE.sub(r"\1n ", text)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


@cache
def everyday_grammar() -> Grammar:
    """Return the grammar of what people say to each other and to assistants."""
    return Grammar(GRAMMAR / "everyday.txt", GRAMMAR / "everyday_slots.txt")


@cache
def numbers_grammar() -> Grammar:
    """Return the grammar of sentences with dates, times, prices and the like, in digits."""
    return Grammar(GRAMMAR / "numbers.txt", GRAMMAR / "numbers_slots.txt")
