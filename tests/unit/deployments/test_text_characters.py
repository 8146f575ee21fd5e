"""Characters outside ASCII: what is said of them, and what is reported."""

import pytest

from deployments.text.english import Normalized, normalize, normalize_with_report


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("café naïve résumé", "cafe naive resume"),
        ("cafe\u0301", "cafe"),
        ("Łódź, Øresund, Straße", "Lodz, Oresund, Strasse"),
        ("Æon and œuvre", "Aeon and oeuvre"),
        ("Þingvellir", "Thingvellir"),
        ("ﬁne ﬂour", "fine flour"),
        ("\uff28\uff45\uff4c\uff4c\uff4f", "Hello"),
        ("\U0001d407\U0001d41e\U0001d425\U0001d425\U0001d428", "Hello"),
        ("zero\u200bwidth, soft\u00adhyphen, \ufeffmark", "zerowidth, softhyphen, mark"),
        ("a\u00a0b\u2009c\u3000d", "a b c d"),
        ("a\x00b\x1bc", "a b c"),
        ("H\u0336e\u0336l\u0336l\u0336o\u0336", "Hello"),
        ("it\u2019s", "it's"),
        ("«bonjour»", "bonjour"),
        ("¿Qué?", "Que?"),
        ("non\u2011breaking", "non breaking"),
        ("one\u2014two", "one, two"),
        ("• one • two", "one, two"),
        ("٣ apples", "three apples"),
        ("① first", "one first"),
        ("Ⅷ", "eight"),
        ("25 ℃", "twenty five degrees Celsius"),
        ("№ 5", "number five"),
        ("5 µm and μ", "five micrometers and mu"),
        ("H₂O", "H two O"),
        ("word¹", "word one"),
        ("Windows™", "Windows"),
        ("∫", "integral"),
    ],
)
def test_characters_are_made_plain(written: str, spoken: str) -> None:
    assert normalize_with_report(written) == Normalized(spoken, ())


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Great job \U0001f600!", "Great job!"),
        ("I ❤️ you", "I you"),
        ("★ five stars ★", "five stars"),
        ("1️⃣", "one"),
    ],
)
def test_a_picture_among_words_is_decoration(written: str, spoken: str) -> None:
    assert normalize_with_report(written) == Normalized(spoken, ())


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("\U0001f600", "grinning face"),
        ("\U0001f389\U0001f389\U0001f389", "party popper"),
        ("\U0001f44d\U0001f3fd!", "thumbs up sign"),
        ("\U0001f469\u200d\U0001f4bb ☕", "woman, personal computer, hot beverage"),
        ("\U0001f1fa\U0001f1f8", "flag U S"),
    ],
)
def test_a_text_of_nothing_but_pictures_is_their_names(written: str, spoken: str) -> None:
    assert normalize_with_report(written) == Normalized(spoken, ())


@pytest.mark.parametrize(
    ("written", "spoken", "unspeakable"),
    [
        ("Hello мир", "Hello", ("мир",)),
        ("世界 and 世界, 日本", "and", ("世界", "日本")),
        ("123 한국", "one hundred twenty three", ("한국",)),
        ("мир 😀", "", ("мир",)),
        ("नमस\u094dते", "", ("नमस\u094dते",)),
        ("Ελλάδ\u03b1", "", ("Ελλάδ\u03b1",)),
        ("a\ud800b", "a b", ("\ud800",)),
        ("a\U000e0fffb\ue000", "a b", ("\U000e0fff", "\ue000")),
    ],
)
def test_what_has_no_english_reading_is_reported(
    written: str, spoken: str, unspeakable: tuple[str, ...]
) -> None:
    assert normalize_with_report(written) == Normalized(spoken, unspeakable)


@pytest.mark.parametrize("written", ["", " ", "...", "?!", "-- ** --", "()", "\u200b", "\n\n"])
def test_a_text_without_anything_to_say_is_empty(written: str) -> None:
    assert normalize_with_report(written) == Normalized("", ())


def test_letters_of_the_alphabet_are_left_as_they_are() -> None:
    text = "The quick brown fox jumps over the lazy dog, doesn't it? Yes, it does! I saw it."
    assert normalize(text) == text
