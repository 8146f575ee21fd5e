import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from demo_voice import texts
from demo_voice.everyday import Grammar, everyday_grammar, numbers_grammar
from demo_voice.texts import common_words, held_out, training_texts, wordnet_examples
from deployments.text.english import normalize

COUNT = 3000


@pytest.fixture(scope="module")
def some() -> list[str]:
    return training_texts(COUNT, seed=1)


def named(domain: str, rng: random.Random) -> Iterator[str]:
    """Endless different texts that begin with the domain."""
    for letters in product("abcdefghij", repeat=5):
        yield f"{domain} {''.join(letters)}."


def words_only(text: str) -> str:
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def test_the_same_seed_gives_the_same_texts(some: list[str]) -> None:
    assert training_texts(COUNT, seed=1) == some


def test_another_seed_gives_other_texts(some: list[str]) -> None:
    assert len(set(training_texts(COUNT, seed=2)) & set(some)) < COUNT / 10


def test_a_longer_list_begins_with_the_shorter(some: list[str]) -> None:
    assert training_texts(500, seed=1) == some[:500]


def test_texts_are_unique_short_and_plain(some: list[str]) -> None:
    assert len(some) == len({words_only(text) for text in some}) == COUNT
    assert all(8 <= len(text) <= 105 for text in some)
    assert [text for text in some if not re.fullmatch(r"[A-Z][A-Za-z ',.?!]*[.?!]", text)] == []
    assert 40 <= sum(map(len, some)) / COUNT <= 50


def test_texts_are_varied(some: list[str]) -> None:
    assert len({word for text in some for word in words_only(text).split()}) > 5000
    assert set("abcdefghijklmnopqrstuvwxyz',.?!") <= set("".join(some).lower())


def test_every_domain_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    for domain in texts.SHARES:
        monkeypatch.setitem(texts._CANDIDATES, domain, partial(named, domain))
    counts = Counter(text.split()[0].lower() for text in training_texts(COUNT, seed=3))
    for domain, share in texts.SHARES.items():
        assert counts[domain] / COUNT == pytest.approx(share, abs=0.03)


def test_the_others_fill_in_for_a_domain_that_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for domain in texts.SHARES:
        monkeypatch.setitem(texts._CANDIDATES, domain, partial(named, domain))
    monkeypatch.setitem(texts._CANDIDATES, "words", lambda rng: iter(["Words again."] * 3))
    counts = Counter(text.split()[0].lower() for text in training_texts(COUNT, seed=3))
    assert counts["words"] == 1
    assert counts.total() == COUNT


def test_more_than_can_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for domain in texts.SHARES:
        monkeypatch.setitem(texts._CANDIDATES, domain, lambda rng: iter(["Only this.", "Or this."]))
    with pytest.raises(ValueError, match="only 2 different texts can be made, not 3"):
        training_texts(3, seed=1)


def test_no_text_is_held_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second, *others = training_texts(50, seed=4)
    (tmp_path / "everyday.txt").write_text(first.lower().rstrip(".?!") + "!\n")
    (tmp_path / "numbers.txt").write_text("")
    (tmp_path / "words.txt").write_text(second.lower().replace(",", "") + "\n")
    monkeypatch.setattr(texts, "HELD_OUT", tmp_path)
    without = training_texts(50, seed=4)
    assert {first, second}.isdisjoint(without)
    assert set(others) <= set(without)


def test_held_out_texts_are_not_in_the_training_texts(some: list[str]) -> None:
    trained = {words_only(text) for text in some}
    for domain in texts.HELD_OUT_DOMAINS:
        assert trained.isdisjoint(words_only(normalize(text)) for text in held_out(domain))


def test_held_out_everyday_sentences() -> None:
    sentences = held_out("everyday")
    assert len(set(sentences)) == 90
    assert all(4 <= len(sentence.split()) <= 14 for sentence in sentences)
    assert all(
        re.fullmatch(r"[A-Z][A-Za-z ',]*[.?!]( [A-Z].*)?", sentence) for sentence in sentences
    )


def test_held_out_numbers() -> None:
    sentences = held_out("numbers")
    assert len(set(sentences)) == 70
    assert all(20 <= len(sentence) <= 75 for sentence in sentences)
    assert all(re.search(r"\d", sentence) for sentence in sentences)
    assert all(re.fullmatch(r"[A-Za-z ',.?!]+", normalize(sentence)) for sentence in sentences)


def test_held_out_words_are_common_words() -> None:
    sentences = held_out("words")
    known = {word.lower() for word in (*common_words(), *texts.function_words())}
    assert len(set(sentences)) == 60
    assert all(4 <= len(sentence.split()) <= 8 for sentence in sentences)
    assert {word for sentence in sentences for word in words_only(sentence).split()} <= known


def test_common_words() -> None:
    words = common_words()
    assert 5500 <= len(words) <= 6500
    assert {"house", "houses", "went", "running", "better"} <= set(words)
    assert {"kill", "killing", "mr", "tv"}.isdisjoint(words)


def test_examples_are_whole_and_decent() -> None:
    examples = wordnet_examples()
    assert len(examples) > 20_000
    assert [text for text in examples if re.search(r"\d|\.\w|\b(?:kill|sex)", text, re.I)] == []


def test_a_grammar_fills_every_slot() -> None:
    rng = random.Random(1)
    for grammar in (everyday_grammar(), numbers_grammar()):
        named = {
            slot
            for text in (
                *grammar.templates,
                *(f for group in grammar.slots.values() for f in group),
            )
            for slot in re.findall(r"{(\w+)}", text)
        }
        assert named == grammar.slots.keys()
        assert not any(re.search(r"[{}#@]|\.\.|^[a-z]", grammar.text(rng)) for _ in range(2000))


def test_a_grammar_writes_articles_and_capitals(tmp_path: Path) -> None:
    (tmp_path / "templates").write_text("{when}. a {what} at @ p.m. and a {what}? {what}.\n")
    (tmp_path / "slots").write_text("[when]\nnow;\nnow\n\n[what]\napple\n")
    text = Grammar(tmp_path / "templates", tmp_path / "slots").text(random.Random(1))
    assert re.fullmatch(r"Now\. An apple at [1-9] p\.m\. and an apple\? Apple\.", text)


@pytest.mark.parametrize(
    ("setting", "package"), [("WORDNET", "wordnet-base"), ("WORD_LIST", "wamerican-small")]
)
def test_a_missing_file_names_its_package(
    setting: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for cached in (common_words, wordnet_examples, texts._known_words):
        cached.cache_clear()
    monkeypatch.setattr(texts, setting, tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=package):
        common_words()
