"""Abbreviations, titles, Roman numerals and capitals, and how they are said."""

import pytest

from deployments.text.english import normalize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Henry VIII ruled", "Henry the eighth ruled"),
        ("Louis XIV's palace", "Louis the fourteenth's palace"),
        ("World War II", "World War two"),
        ("World War I began", "World War one began"),
        ("WWII and WW2", "World War two and World War two"),
        ("Elizabeth II", "Elizabeth the second"),
        ("King Charles I was", "King Charles the first was"),
        ("Charles I think", "Charles I think"),
        ("Henry V. He won", "Henry the fifth. He won"),
        ("Robert V. Smith", "Robert V Smith"),
        ("Chapter IV, Part II", "Chapter four, Part two"),
        ("the Part I like", "the Part I like"),
        ("Type II diabetes", "Type two diabetes"),
        ("Pope John Paul II", "Pope John Paul the second"),
        ("Final Fantasy VII", "Final Fantasy seven"),
        ("IV drip", "I V drip"),
        ("Malcolm X", "Malcolm X"),
    ],
)
def test_a_roman_numeral_behind_what_is_counted(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Dr. Smith", "Doctor Smith"),
        ("Mr. Jones", "Mister Jones"),
        ("Mrs. Jones", "Missus Jones"),
        ("Ms. Lee", "Miz Lee"),
        ("Mr. and Mrs. Smith", "Mister and Missus Smith"),
        ("Dr Smith", "Doctor Smith"),
        ("Prof. X", "Professor X"),
        ("Gen. Lee", "General Lee"),
        ("Lt. Col. Jones", "Lieutenant Colonel Jones"),
        ("Sen. Ann and Rep. Bob", "Senator Ann and Representative Bob"),
        ("He is a gen. clerk", "He is a gen. clerk"),
        ("Sammy Davis Jr. was", "Sammy Davis Junior was"),
        ("Mt. Everest", "Mount Everest"),
    ],
)
def test_a_title(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("123 Main St.", "one hundred twenty three Main Street."),
        ("I live on Main St. in Boston", "I live on Main Street in Boston"),
        ("5th Ave.", "fifth Avenue."),
        ("Park Ave and Elm Rd.", "Park Avenue and Elm Road."),
        ("St. Peter", "Saint Peter"),
        ("in St. Louis", "in Saint Louis"),
        ("St. Patrick's Day on Main St.", "Saint Patrick's Day on Main Street."),
        ("The St. Louis Cardinals", "The Saint Louis Cardinals"),
        ("42nd St. Station", "forty second Street Station"),
        ("Mulholland Dr.", "Mulholland Drive."),
        ("12 N. Elm St.", "twelve North Elm Street."),
        ("Martin Luther King Jr. Blvd.", "Martin Luther King Junior Boulevard."),
    ],
)
def test_saint_and_street_by_position(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("apples, pears, etc.", "apples, pears, etcetera."),
        ("etc., etc. and so on", "etcetera, etcetera and so on"),
        ("e.g. this", "for example, this"),
        ("e.g., this", "for example, this"),
        ("i.e., that", "that is, that"),
        ("A vs. B", "A versus B"),
        ("cats vs dogs", "cats versus dogs"),
        ("Smith et al. found", "Smith and others found"),
        ("Acme Inc. said", "Acme Incorporated said"),
        ("Acme Inc. The end", "Acme Incorporated. The end"),
        ("Gamble & Co.", "Gamble and Company."),
        ("in Feb. it snowed", "in February it snowed"),
        ("dept. store", "department store"),
        ("the U.S. Army", "the U S Army"),
        ("in the U.S. He left", "in the U S. He left"),
        ("Washington, D.C. is", "Washington, D C is"),
        ("the U.S.", "the U S."),
        ("Ph.D. student", "P H D student"),
        ("a PhD", "a P H D"),
        ("5 km and many km", "five kilometers and many kilometers"),
        ("OK", "okay"),
    ],
)
def test_an_abbreviation(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("J. K. Rowling", "J K Rowling"),
        ("J.R.R. Tolkien", "J R R Tolkien"),
        ("John F. Kennedy", "John F Kennedy"),
        ("Vitamin C. Then", "Vitamin C. Then"),
        ("so do I. Then", "so do I. Then"),
    ],
)
def test_initials_lose_their_stops(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("the USA", "the U S A"),
        ("NASA and FBI", "NASA and F B I"),
        ("IBM's CPUs", "I B M's C P U's"),
        ("the IT department", "the I T department"),
        ("the WHO said NO", "the W H O said no"),
        ("STOP THAT NOW", "stop that now"),
        ("DON'T PANIC", "don't panic"),
        ("I AM SO HAPPY", "I am so happy"),
        ("THIS IS A TEST", "this is a test"),
        ("BREAKING NEWS: FBI AND CIA", "breaking news, F B I and C I A"),
        ("USA TODAY", "U S A today"),
        ("HTTPS", "H T T P S"),
        ("ASAP", "A S A P"),
        ("MySQL", "My S Q L"),
        ("iOS and mRNA", "i O S and m R N A"),
        ("pH", "p H"),
        ("html and css", "h t m l and c s s"),
        ("hmm, shh", "hmm, shh"),
        ("iPhone and McDonald's", "iPhone and McDonald's"),
        ("NASA's plan", "NASA's plan"),
    ],
)
def test_a_word_in_capitals(written: str, spoken: str) -> None:
    assert normalize(written) == spoken
