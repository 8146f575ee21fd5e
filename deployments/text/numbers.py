"""Numbers as English words, the American way: no "and", no hyphens."""

from __future__ import annotations

from deployments.text.rules import words

LONGEST = 36  # digits; a longer number has no name here and is read digit by digit

_ONES = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = words("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
_SCALES = words(
    "_ thousand million billion trillion quadrillion quintillion sextillion septillion "
    "octillion nonillion decillion"
)
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(number: int) -> str:
    """``1234`` -> one thousand two hundred thirty four.

    Args:
        number: at least 0, of at most ``LONGEST`` digits.
    """
    if number == 0:
        return _ONES[0]
    spoken: list[str] = []
    for scale in range(len(_SCALES) - 1, -1, -1):
        group = number // 1000**scale % 1000
        if group:
            spoken += _below_thousand(group)
            spoken += [_SCALES[scale]] if scale else []
    return " ".join(spoken)


def ordinal(number: int) -> str:
    """``21`` -> twenty first."""
    *before, last = cardinal(number).split()
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*before, last])


def year(number: int) -> str:
    """``2021`` -> twenty twenty one, ``1905`` -> nineteen oh five, ``2007`` -> two thousand seven.

    Args:
        number: 1000 to 9999, or anything else, which is read as a plain number.
    """
    century, rest = divmod(number, 100)
    if not 10 <= century <= 99 or (century % 10 == 0 and rest < 10):
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def digits(text: str) -> str:
    """``007`` -> zero zero seven; what is not a digit is skipped."""
    return " ".join(_ONES[int(digit)] for digit in text if digit.isdigit())


def amount(text: str) -> str:
    """A written number: ``1,200`` -> one thousand two hundred, ``3.14`` -> three point one four.

    A number with a needless zero in front, or too long to be named, is read digit by digit.

    Args:
        text: digits, with commas between thousands, with or without a decimal point.
    """
    whole, point, fraction = text.replace(",", "").partition(".")
    spoken = [_whole(whole)] if whole else []
    return " ".join([*spoken, "point", digits(fraction)] if point and fraction else spoken)


def plain(text: str) -> str:
    """As ``amount``, but four digits that look like a year (1100 to 2099) are read like one."""
    if len(text) == 4 and text.isdigit() and 1100 <= int(text) <= 2099:
        return year(int(text))
    return amount(text)


def plural(spoken: str) -> str:
    """``nineteen nineties``, ``sixes``: the plural of the last word of a number."""
    if spoken.endswith("y"):
        return spoken[:-1] + "ies"
    return spoken + ("es" if spoken.endswith("x") else "s")


def _whole(text: str) -> str:
    named = len(text) <= LONGEST and (text == "0" or not text.startswith("0"))
    return cardinal(int(text)) if named else digits(text)


def _below_thousand(number: int) -> list[str]:
    hundreds, rest = divmod(number, 100)
    spoken = [_ONES[hundreds], "hundred"] if hundreds else []
    if rest < 20:
        return spoken + ([_ONES[rest]] if rest else [])
    tens, ones = divmod(rest, 10)
    return [*spoken, _TENS[tens], *([_ONES[ones]] if ones else [])]
