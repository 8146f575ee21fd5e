"""Numbers in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.text.numbers import amount, cardinal, digits, ordinal, plain, plural, year


@pytest.mark.parametrize(
    ("number", "spoken"),
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (45, "forty five"),
        (100, "one hundred"),
        (101, "one hundred one"),
        (999, "nine hundred ninety nine"),
        (1000, "one thousand"),
        (1234, "one thousand two hundred thirty four"),
        (1_000_000, "one million"),
        (2_000_019, "two million nineteen"),
        (10**35, "one hundred decillion"),
    ],
)
def test_a_cardinal(number: int, spoken: str) -> None:
    assert cardinal(number) == spoken


@pytest.mark.parametrize(
    ("number", "spoken"),
    [
        (0, "zeroth"),
        (1, "first"),
        (2, "second"),
        (3, "third"),
        (5, "fifth"),
        (8, "eighth"),
        (9, "ninth"),
        (12, "twelfth"),
        (20, "twentieth"),
        (21, "twenty first"),
        (100, "one hundredth"),
        (1000, "one thousandth"),
    ],
)
def test_an_ordinal(number: int, spoken: str) -> None:
    assert ordinal(number) == spoken


@pytest.mark.parametrize(
    ("number", "spoken"),
    [
        (1066, "ten sixty six"),
        (1100, "eleven hundred"),
        (1776, "seventeen seventy six"),
        (1900, "nineteen hundred"),
        (1905, "nineteen oh five"),
        (2000, "two thousand"),
        (2007, "two thousand seven"),
        (2010, "twenty ten"),
        (2021, "twenty twenty one"),
        (2100, "twenty one hundred"),
        (800, "eight hundred"),
    ],
)
def test_a_year(number: int, spoken: str) -> None:
    assert year(number) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("0", "zero"),
        ("007", "zero zero seven"),
        ("2021", "two thousand twenty one"),
        ("1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("3.14", "three point one four"),
        ("0.05", "zero point zero five"),
        (".5", "point five"),
        ("1" * 36, cardinal(int("1" * 36))),
        ("1" * 37, " ".join(["one"] * 37)),
    ],
)
def test_an_amount(written: str, spoken: str) -> None:
    assert amount(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("1099", "one thousand ninety nine"),
        ("1100", "eleven hundred"),
        ("2099", "twenty ninety nine"),
        ("2100", "two thousand one hundred"),
        ("1,999", "one thousand nine hundred ninety nine"),
    ],
)
def test_four_digits_are_a_year_if_they_can_be_one(written: str, spoken: str) -> None:
    assert plain(written) == spoken


@pytest.mark.parametrize(
    ("spoken", "several"),
    [("ninety", "nineties"), ("six", "sixes"), ("seven", "sevens"), ("hundred", "hundreds")],
)
def test_the_plural_of_a_number(spoken: str, several: str) -> None:
    assert plural(spoken) == several


def test_digits_one_by_one() -> None:
    assert digits("555-0199") == "five five five zero one nine nine"


@given(st.integers(min_value=0, max_value=10**36 - 1))
def test_every_number_has_a_name_of_its_own(number: int) -> None:
    assert cardinal(number) != cardinal(number + 1 if number < 10**36 - 1 else number - 1)
    assert amount(str(number)) == cardinal(number) == amount(f"{number:,}")
