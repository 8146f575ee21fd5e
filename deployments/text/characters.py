"""Characters in their plainest form: what is left is ASCII and the signs in ``KEPT``.

NFKC first; then accents go, other digits become 0 to 9, quotes and dashes become plain, a
lone Greek letter becomes its name. What has no English reading is reported.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

# Signs outside ASCII that the rules read.
KEPT = frozenset("¢£¥§©°±\u00d7÷\u03a9μ\u2013₩€₹₺₽→\u2212√∞≈≠≤≥")
_PUNCTUATION = {
    "\u2018\u2019\u201a\u201b\u02bc\u02b9\u00b4\u2032": "'",
    "\u201c\u201d\u201e‟«»\u2033〝〞〟": '"',
    "\u2010\u2011\u2043": "-",
    "\u2012\u2013": "\u2013",
    "\u2014\u2015⸺⸻": " -- ",
    "\u2044\u2215": "/",
    "•‣●▪◦\u00b7": ", ",
    "№": "#",
    "™®℠¿¡": " ",
    "\u3002\u06d4।": ".",
    "\u3001،": ",",
    "؟\u203d": "?",
    "؛": ";",
    "‰": " per mille ",
    "º": "°",
}
_LETTERS = {
    "ß": "ss",
    "ẞ": "SS",
    "ð": "d",
    "Ð": "D",
    "þ": "th",
    "Þ": "Th",
    "\u0131": "i",
    "ŋ": "ng",
    "Ŋ": "Ng",
    "ə": "e",
    "Ə": "E",
}
_FRACTIONS = {  # kept apart from a number in front of them
    chr(code): " " + unicodedata.normalize("NFKC", chr(code)).replace("\u2044", "/")
    for code in (0xBC, 0xBD, 0xBE, *range(0x2150, 0x215F), 0x2189)
}
_BEFORE_NFKC = str.maketrans(
    {sign: plain for signs, plain in _PUNCTUATION.items() for sign in signs} | _FRACTIONS
)
_POWERS = re.compile("⁻?[⁰¹²³⁴-⁹]{1,36}")
_GREEK = re.compile("(?<![Ͱ-Ͽ])[\u0391-ω](?![Ͱ-Ͽ])")
_LATIN_NAME = re.compile(r"LATIN (SMALL|CAPITAL) (?:LETTER|LIGATURE) ([A-Z]{1,2})(?: WITH .*)?")
_NOT_ASCII = re.compile(rf"[^\x00-\x7f{''.join(sorted(KEPT))}]+")
_PICTURE = re.compile("[\U0001f1e6-\U0001f1ff]{2}|[^\x00-\x7f]")
_CONTROLS = dict.fromkeys([*range(32), 127], " ")
_ATTACHED = ("Mn", "Mc", "Me", "Cf")
_DROPPED, _REPORTED = "", None


class Plain(NamedTuple):
    """A text in plain characters, and the stretches of it that cannot be spoken."""

    text: str
    unspeakable: tuple[str, ...]


def plain(text: str) -> Plain:
    """The text in ASCII and ``KEPT``.

    Unspeakable are words in other scripts, unassigned characters and the like, each once,
    in order. Pictures (emoji and other signs without a word) are left out; so are
    invisible characters.
    """
    unspeakable: dict[str, None] = {}
    if not text.isascii():
        text = _POWERS.sub(_power, text)
        text = unicodedata.normalize("NFKC", text.translate(_BEFORE_NFKC)).translate(_BEFORE_NFKC)
        text = _GREEK.sub(_greek, text)
        text = _NOT_ASCII.sub(lambda match: _read(match[0], unspeakable), text)
    return Plain(text.translate(_CONTROLS), tuple(unspeakable))


def pictures(text: str) -> str:
    """The names of the emoji and other pictures in a text; of a row of the same one, one."""
    names: list[str] = []
    for picture in _PICTURE.findall(unicodedata.normalize("NFKC", text)):
        if len(picture) == 2:
            name = f"flag {_regional_letter(picture[0])} {_regional_letter(picture[1])}"
        elif unicodedata.category(picture) == "So" and picture not in KEPT:
            name = unicodedata.name(picture).lower()
        else:
            continue
        if not names or names[-1] != name:
            names.append(name)
    return ", ".join(names)


def _regional_letter(indicator: str) -> str:
    return chr(ord(indicator) - 0x1F1E6 + ord("A"))


def _read(stretch: str, unspeakable: dict[str, None]) -> str:
    """The reading of characters that are neither ASCII nor kept; adds to ``unspeakable``."""
    read: list[str] = []
    unread: list[str] = []
    for character in [*stretch, ""]:
        reading = _reading(character) if character else _DROPPED
        attached = unread and character and unicodedata.category(character) in _ATTACHED
        if reading is None or attached:
            unread.append(character)
            continue
        if unread:
            unspeakable[unicodedata.normalize("NFC", "".join(unread))] = None
            unread.clear()
            read.append(" ")
        read.append(reading)
    return "".join(read)


@lru_cache(maxsize=4096)
def _reading(character: str) -> str | None:
    """A character that is neither ASCII nor kept, in those; None: it has no reading."""
    if character in _LETTERS:
        return _LETTERS[character]
    if character.isspace():
        return " "
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    category = unicodedata.category(character)
    if category[0] == "L":
        return _latin(character)
    if category[0] == "N":
        number = unicodedata.numeric(character, -1.0)
        return f" {int(number)} " if number >= 0 and number == int(number) else _REPORTED
    if category in ("Sm", "Sc"):
        return f" {unicodedata.name(character).lower()} "
    if category in ("Cn", "Co", "Cs"):
        return _REPORTED
    if category[0] in "MC" or category == "Sk":
        return _DROPPED
    return {"Pd": "-", "Ps": "(", "Pe": ")", "Pi": '"', "Pf": '"'}.get(category, " ")


def _latin(character: str) -> str | None:
    base = unicodedata.normalize("NFD", character)[0]
    if base.isascii() and base.isalpha():
        return base
    name = _LATIN_NAME.fullmatch(unicodedata.name(character, ""))
    if name is None:
        return _REPORTED
    size, letters = name.groups()
    return letters.lower() if size == "SMALL" else letters.capitalize()


def _greek(match: re.Match[str]) -> str:
    if match[0] in KEPT:
        return match[0]
    words = unicodedata.name(match[0], "").lower().split()
    return f" {words[3]} " if len(words) > 3 else match[0]


def _power(match: re.Match[str]) -> str:
    return "^" + unicodedata.normalize("NFKC", match[0]).replace("\u2212", "-")
