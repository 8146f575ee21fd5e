"""Counting word errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_voice.wer import Errors, align, word_errors, words

_FEW_WORDS = st.lists(st.sampled_from(["red", "green", "blue", "black"]), max_size=7)


@pytest.mark.parametrize(
    ("reference", "transcript", "substitutions", "deletions", "insertions"),
    [
        ("the cat sat", "the cat sat", 0, 0, 0),
        ("the cat sat", "the bat sat", 1, 0, 0),
        ("the cat sat", "the sat", 0, 1, 0),
        ("the cat sat", "the fat cat sat", 0, 0, 1),
        ("the cat sat", "", 0, 3, 0),
        ("", "the cat", 0, 0, 2),
        ("a b c d", "b c d e", 0, 1, 1),
        ("one two three four", "one too tree", 2, 1, 0),
        ("sat the cat", "the cat sat", 0, 1, 1),
    ],
)
def test_known_alignments(
    reference: str, transcript: str, substitutions: int, deletions: int, insertions: int
) -> None:
    found = align(reference.split(), transcript.split())
    assert found == Errors(substitutions, deletions, insertions, len(reference.split()))


@pytest.mark.parametrize(
    ("text", "transcript"),
    [
        ("Someone is at the door.", "some one is at the door"),
        ("Put it in to the box.", "put it into the box"),
        ("It leaves at 7:15 p.m.", "it leaves at seven fifteen p.m."),
        ("It leaves at 7:15 p.m.", "it leaves at seven fifteen pm"),
        ("It leaves at 7:15 p.m.", "it leaves at seven fifteen p. m."),
        ("The bus comes at 8:05.", "the bus comes at eight o. five"),
        ("That's OK, Mr. Reyes!", "that's okay mister reyes"),
        ("Whose turn is it? The dog's.", "whose turn is it the dog 's"),
        ("The color of my neighbor's car", "the colour of my neighbor's car"),
    ],
)
def test_other_ways_to_write_the_same_are_no_errors(text: str, transcript: str) -> None:
    assert word_errors(text, transcript).total == 0


@pytest.mark.parametrize(
    ("text", "transcript", "errors"),
    [
        ("Their house", "there house", 1),
        ("We're home", "were home", 1),
        ("Someone else", "some else", 1),
        ("I can", "I can't", 1),
        ("It cost $4.50.", "it cost four fifty", 3),  # ... dollars and fifty cents
    ],
)
def test_what_was_not_said_is_an_error(text: str, transcript: str, errors: int) -> None:
    assert word_errors(text, transcript).total == errors


def test_words_have_no_case_and_no_punctuation() -> None:
    assert words("Well, DON'T  'you' dare -- re-open it!") == [
        *("well", "don't", "you", "dare", "re", "open", "it")
    ]


def test_rate_of_sums_weighs_by_words() -> None:
    both = Errors(1, 0, 0, 2) + Errors(0, 1, 2, 8)
    assert (both.total, both.words, both.rate) == (4, 10, 0.4)
    assert Errors().rate == 0


@given(_FEW_WORDS)
def test_a_text_has_no_errors_against_itself(text: list[str]) -> None:
    assert align(text, text) == Errors(words=len(text))


@given(_FEW_WORDS, _FEW_WORDS)
def test_lengths_and_kinds_agree(reference: list[str], transcript: list[str]) -> None:
    found = align(reference, transcript)
    assert len(reference) - found.deletions + found.insertions == len(transcript)
    assert abs(len(reference) - len(transcript)) <= found.total
    assert found.total <= max(len(reference), len(transcript))


@given(_FEW_WORDS, _FEW_WORDS)
def test_turned_around_insertions_are_deletions(first: list[str], second: list[str]) -> None:
    assert align(first, second).total == align(second, first).total


@given(_FEW_WORDS, _FEW_WORDS, _FEW_WORDS)
def test_a_detour_is_not_shorter(first: list[str], second: list[str], third: list[str]) -> None:
    direct = align(first, third).total
    assert direct <= align(first, second).total + align(second, third).total
