"""The texts a demonstration voice learns from, and those it is tested on.

Training texts are drawn from four domains at random: everyday sentences from a grammar, examples of
usage in WordNet, common words in a random order, and written numbers read out. WordNet 3.0 is
Copyright 2006 by Princeton University, whose licence allows any use.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from demo_voice.everyday import GRAMMAR, everyday_grammar, numbers_grammar
from deployments.text.english import normalize

WORDNET = Path("/usr/share/wordnet")
WORD_LIST = Path("/usr/share/dict/american-english-small")
HELD_OUT = Path(__file__).parent / "held_out"
HELD_OUT_DOMAINS = ("everyday", "numbers", "words")

SHORTEST = 8
LONGEST = 105

# The common words: so many base forms, and the other forms of so many of them.
LEMMAS = 4000
INFLECTED_LEMMAS = 900

# In a random sequence of words: the share of function words, and of words with a comma after them.
FUNCTION_WORDS = 0.2
COMMAS = 0.05

# The share of each domain in the training texts.
SHARES = {"everyday": 0.40, "examples": 0.20, "words": 0.25, "numbers": 0.15}

# A domain counts as used up after this many candidates in a row that nothing could be made of.
PATIENCE = 2000

_TEXT = re.compile(r"[A-Z][A-Za-z' ,.?!]*[.?!]")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?", re.I)
_HAS_VOWEL = re.compile("[aeiouy]", re.I)
# No full stop but the last, which leaves out abbreviations; an apostrophe only within a word.
_EXAMPLE = re.compile(r"(?:[A-Za-z]|(?<=[a-z])'(?=[a-z])|[ ,])+[.?!]")


def training_texts(count: int, seed: int) -> list[str]:
    """Return `count` different texts, none of which is held out; a longer list begins the same.

    Raises:
        FileNotFoundError: data is missing; the message names the Debian package to install.
        ValueError: there are fewer than `count` texts.
    """
    # Each domain draws on its own, so that a change to one leaves the texts of the others alone.
    sources = {
        domain: candidates(random.Random(f"{seed} {domain}"))
        for domain, candidates in _CANDIDATES.items()
    }
    seen = {_key(normalize(text)) for domain in HELD_OUT_DOMAINS for text in held_out(domain)}
    shares = dict(SHARES)
    rng = random.Random(f"{seed} mix")
    texts: list[str] = []
    while len(texts) < count:
        domain = rng.choices(list(shares), list(shares.values()))[0]
        text = _next_new(sources[domain], seen)
        if text is None:
            del shares[domain]
            if not shares:
                raise ValueError(f"only {len(texts)} different texts can be made, not {count}")
        else:
            seen.add(_key(text))
            texts.append(text)
    return texts


def held_out(domain: str) -> list[str]:
    """Return the test sentences of `everyday`, `numbers` or `words`, as they are written."""
    return (HELD_OUT / f"{domain}.txt").read_text(encoding="utf-8").splitlines()


def _next_new(source: Iterator[str], seen: set[str]) -> str | None:
    """Return the next text of `source` that may be used, or None where it has run dry."""
    for candidate in islice(source, PATIENCE):
        text = _spoken_text(candidate)
        if text is not None and _key(text) not in seen:
            return text
    return None


def _spoken_text(candidate: str) -> str | None:
    """Return `candidate` as one plain line, or None if it is no training text."""
    text = " ".join(candidate.replace("-", " ").split())
    text = text[:1].upper() + text[1:]
    if not SHORTEST <= len(text) <= LONGEST or not _TEXT.fullmatch(text):
        return None
    return text


def _key(text: str) -> str:
    """Return what two texts share that differ in case and punctuation only."""
    return " ".join(_WORD.findall(text.lower()))


def _everyday(rng: random.Random) -> Iterator[str]:
    grammar = everyday_grammar()
    while True:
        yield grammar.text(rng)


def _numbers(rng: random.Random) -> Iterator[str]:
    grammar = numbers_grammar()
    while True:
        yield normalize(grammar.text(rng))


def _examples(rng: random.Random) -> Iterator[str]:
    examples = wordnet_examples()
    yield from rng.sample(examples, len(examples))


def _words(rng: random.Random) -> Iterator[str]:
    words = common_words()
    while True:
        yield random_words(rng, words)


_CANDIDATES = {
    "everyday": _everyday,
    "examples": _examples,
    "words": _words,
    "numbers": _numbers,
}


def random_words(rng: random.Random, words: list[str]) -> str:
    """Return three to nine words as if they were a sentence."""
    chosen = [
        rng.choice(function_words()) if rng.random() < FUNCTION_WORDS else rng.choice(words)
        for _ in range(rng.randint(3, 9))
    ]
    for place in range(1, len(chosen) - 1):
        if rng.random() < COMMAS:
            chosen[place] += ","
    return " ".join(chosen) + "."


@cache
def function_words() -> list[str]:
    """Return pronouns, prepositions and the like, with contractions."""
    return (GRAMMAR / "function_words.txt").read_text(encoding="utf-8").split()


@cache
def common_words() -> list[str]:
    """Return about 6000 words, in alphabetical order.

    They are the words most often met in the texts tagged for WordNet, and their inflected forms.

    Raises:
        FileNotFoundError: data is missing; the message names the Debian package to install.
    """
    counts: Counter[str] = Counter()
    for line in _wordnet("cntlist.rev"):
        sense, _, count = line.split()
        counts[sense.partition("%")[0]] += int(count)
    known = {word for word in _known_words() if _is_plain(word) and word.islower()}
    # Ties are broken by the alphabet, not by the order of the file.
    lemmas = sorted(known & counts.keys(), key=lambda word: (-counts[word], word))[:LEMMAS]
    forms = {form for lemma in lemmas[:INFLECTED_LEMMAS] for form in _regular_forms(lemma)}
    forms |= _irregular_forms(set(lemmas[:INFLECTED_LEMMAS]))
    return sorted({*lemmas, *(forms & known)})


@cache
def wordnet_examples() -> list[str]:
    """Return the examples of usage in WordNet that are plain English, each as a sentence.

    Raises:
        FileNotFoundError: data is missing; the message names the Debian package to install.
    """
    examples = []
    for part_of_speech in ("noun", "verb", "adj", "adv"):
        for line in _wordnet(f"data.{part_of_speech}"):
            for example in re.findall(r'"([^"]+)"', line.partition(" | ")[2]):
                text = example.replace("-", " ").strip()
                if text[-1:] not in {".", "?", "!"}:
                    text += "."
                words = _WORD.findall(text)
                if len(words) > 3 and _EXAMPLE.fullmatch(text) and all(map(_is_known, words)):
                    examples.append(text)
    return examples


def _is_known(word: str) -> bool:
    base = word.removesuffix("'s")
    return _is_plain(base) and not {word, word.lower(), base, base.lower()}.isdisjoint(
        _known_words()
    )


def _is_plain(word: str) -> bool:
    """Whether `word` is read as a word, not as letters, and may be said to anyone."""
    if len(word) == 1:
        return word in "aAI"
    return not word.isupper() and bool(_HAS_VOWEL.search(word)) and not _unwanted().fullmatch(word)


@cache
def _known_words() -> frozenset[str]:
    return frozenset(word for word in _lines(WORD_LIST, "wamerican-small") if _WORD.fullmatch(word))


@cache
def _unwanted() -> re.Pattern[str]:
    """Return what matches the words that are left out, in all their forms."""
    stems = "|".join((GRAMMAR / "unwanted.txt").read_text(encoding="utf-8").split())
    return re.compile(rf"(?:{stems})(?:e?s|e?d|r|ers?|ings?|ions?|ors?|ous|y|ly|e|es|ment)?", re.I)


def _regular_forms(lemma: str) -> list[str]:
    short = lemma.removesuffix("e")
    doubled = lemma + lemma[-1]
    soft = lemma[:-1] + "i" if lemma.endswith("y") else short
    endings = [lemma + "s", soft + "es", soft + "ed", soft + "er", soft + "est", lemma + "ly"]
    return [*endings, short + "ing", doubled + "ed", doubled + "ing"]


def _irregular_forms(lemmas: set[str]) -> set[str]:
    forms = set()
    for part_of_speech in ("noun", "verb", "adj"):
        for line in _wordnet(f"{part_of_speech}.exc"):
            form, *bases = line.split()
            if not lemmas.isdisjoint(bases):
                forms.add(form)
    return forms


def _wordnet(name: str) -> list[str]:
    return _lines(WORDNET / name, "wordnet-base")


def _lines(path: Path, package: str) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: install Debian package {package}") from None
