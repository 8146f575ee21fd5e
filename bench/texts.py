"""Texts to speak, no two alike: a prompt that was there before is served from the prefix cache."""

from __future__ import annotations

import random
from collections.abc import Iterator

from demo_voice.everyday import everyday_grammar

SHORTEST, LONGEST = 25, 70  # characters


def unique_texts(seed: int) -> Iterator[str]:
    """Everyday sentences without end; equal seeds give equal ones."""
    rng, given = random.Random(seed), set[str]()
    grammar = everyday_grammar()
    while True:
        text = grammar.text(rng)
        if SHORTEST <= len(text) <= LONGEST and text not in given:
            given.add(text)
            yield text
