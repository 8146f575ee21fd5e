"""Abbreviations, titles, streets, and Roman numerals behind a name.

``DOTTED`` reads the text as it was written. ``RULES`` read letters and punctuation only:
numbers are words by then. There a trigger is always replaced, or left alone for good,
because a text that was normalised is normalised again to itself.
"""

from __future__ import annotations

import re

from deployments.text.numbers import cardinal, ordinal
from deployments.text.rules import STOP, Rule, from_table, one_of, rule, word_before, word_set

# With a stop and a name behind it.
_TITLES = {
    "Gen": "General",
    "Col": "Colonel",
    "Capt": "Captain",
    "Cpt": "Captain",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Cmdr": "Commander",
    "Adm": "Admiral",
    "Maj": "Major",
    "Gov": "Governor",
    "Sen": "Senator",
    "Rep": "Representative",
    "Rev": "Reverend",
    "Hon": "Honorable",
    "Pres": "President",
    "Fr": "Father",
    "Mt": "Mount",
    "Ft": "Fort",
}
# With or without: no word is spelled like these.
_NAMES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Messrs": "Messieurs",
    "Prof": "Professor",
    "Jr": "Junior",
    "Sr": "Senior",
    "Ltd": "Limited",
    "Blvd": "Boulevard",
    "Hwy": "Highway",
    "Pkwy": "Parkway",
    "Sept": "September",
}
_WORDS = {
    "etc": "etcetera",
    "dept": "department",
    "Dept": "Department",
    "govt": "government",
    "Govt": "Government",
    "ok": "okay",
    "Ok": "Okay",
    "approx": "approximately",
    "Approx": "Approximately",
    "km": "kilometers",
    "cm": "centimeters",
    "mm": "millimeters",
    "kg": "kilograms",
    "lbs": "pounds",
    "lb": "pound",
    "mph": "miles per hour",
    "hr": "hour",
    "hrs": "hours",
}
# With a stop.
_NAMES_WITH_STOP = {
    "Inc": "Incorporated",
    "Corp": "Corporation",
    "Co": "Company",
    "Bros": "Brothers",
    "Assn": "Association",
    "Univ": "University",
    "Esq": "Esquire",
    "Vol": "Volume",
    "Jan": "January",
    "Feb": "February",
    "Apr": "April",
    "Aug": "August",
    "Oct": "October",
    "Nov": "November",
    "Dec": "December",
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Thur": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
}
_WORDS_WITH_STOP = {
    "misc": "miscellaneous",
    "incl": "including",
    "excl": "excluding",
    "avg": "average",
    "cf": "compare",
    "viz": "namely",
    "ibid": "ibidem",
}
_STREETS = {
    "Ave": "Avenue",
    "Rd": "Road",
    "Ln": "Lane",
    "Sq": "Square",
    "Pl": "Place",
    "Ct": "Court",
}
# Whose full stop ends no sentence, as a name follows; and those whose stop can end one.
BEFORE_NAMES = frozenset({*_TITLES, "Dr", "Mr", "Mrs", "Ms", "Messrs", "Prof", "St", "vs"})
SOMETIMES_LAST = frozenset(
    {*_NAMES, *_WORDS, *_NAMES_WITH_STOP, *_WORDS_WITH_STOP, *_STREETS, "al"} - {"ok", "Ok"}
)
_PHRASES = {
    "e.g.": "for example,",
    "i.e.": "that is,",
    "a.k.a.": "also known as",
    "w.r.t.": "with respect to",
    "et al.": "and others",
    "c.f.": "compare",
}
_RULERS = (
    "Alexander|Alfonso|Amenhotep|Baldwin|Benedict|Boniface|Carlos|Catherine|Charles|Christian|"
    "Clement|Cleopatra|Darius|David|Edward|Elizabeth|Emmanuel|Ferdinand|Francis|Frederick|"
    "Friedrich|George|Gregory|Gustav|Haakon|Harald|Henry|Innocent|Ivan|James|John|Juan|Julius|"
    "Leo|Leopold|Louis|Margaret|Mary|Maximilian|Mehmed|Murad|Napoleon|Nicholas|Olaf|Otto|"
    "Paul|Pedro|Peter|Philip|Pius|Ptolemy|Rama|Ramesses|Ramses|Richard|Robert|Rudolf|Selim|"
    "Sigismund|Sixtus|Suleiman|Thutmose|Umberto|Urban|Victor|Wilhelm|William|Xerxes"
)
_RULING = "King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan|Pharaoh|Prince"
_COUNTED = (
    "World War|Act|Apollo|Appendix|Article|Book|Chapter|Class|Episode|Figure|Grade|Level|Mark|Part|"
    "Phase|Scene|Section|Stage|Super Bowl|Table|Tier|Title|Type|Volume"
)
# I to XXXIX; not in front of letters that are spelled.
_ROMAN = r"(?P<roman>(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3}))(?![A-Za-z]| [A-Z]\b)"
_ONLY_ROMAN = "II|III|VII|VIII|XII|XIII|XVI|XVII|XVIII|XXI|XXII|XXIII"
_NAME = re.compile("[A-Z][a-z]+")
# Words that begin a sentence more often than they follow initials.
_FIRST_WORDS = "He|She|It|We|They|You|The|This|That|These|There|But|And|If|When|In|Then"
# Capitals that begin a phrase or name a letter, and are no part of a name.
_NO_NAMES = word_set(
    "A An And As At But By For From If In Is Near Of On Or The This To Via Visit When Where With "
    "Doctor Mister Appendix Class Exhibit Figure Grade Group Hepatitis Option Part Plan Point "
    "Section Step Table Team Type Vitamin"
)


def _behind_a_name(match: re.Match[str]) -> bool:
    word = word_before(match)
    return bool(_NAME.fullmatch(word)) and word not in _NO_NAMES


def _behind_a_street(match: re.Match[str]) -> bool:
    word = word_before(match)
    return _behind_a_name(match) or word.lower().endswith(("first", "second", "third", "th"))


def _roman(numeral: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in numeral]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < after else value for value, after in pairs)


def _ruler(match: re.Match[str]) -> str | None:
    if match["roman"] == "I" and not match["title"]:
        return None  # more likely the pronoun
    name = re.match(r"\.? ([A-Z][a-z]+)", match.string[match.end() : match.end() + 40])
    if len(match["roman"]) == 1 and name and name[1] not in _FIRST_WORDS.split("|"):
        return None  # more likely an initial
    return f"{match['title'] or ''}{match['name']} the {ordinal(_roman(match['roman']))}"


def _counted(match: re.Match[str]) -> str | None:
    verb = re.match(" [a-z]", match.string[match.end() : match.end() + 2])
    if match["roman"] == "I" and verb and match["what"] not in ("World War", "Chapter", "Act"):
        return None  # the pronoun, as in "the part I like"
    return f"{match['what']} {cardinal(_roman(match['roman']))}"


def _saint_or_street(match: re.Match[str]) -> str:
    return "Saint" if match["name"] is not None and not _behind_a_street(match) else "Street"


def _doctor_or_drive(match: re.Match[str]) -> str:
    return "Drive" if match["name"] is None and _behind_a_name(match) else "Doctor"


def _street(match: re.Match[str]) -> str | None:
    return _STREETS[match[1]] if _behind_a_street(match) else None


def _middle_initial(match: re.Match[str]) -> str | None:
    return match[1] if _behind_a_name(match) else None


def _initials(match: re.Match[str]) -> str:
    return " ".join(filter(str.isalpha, match[0]))


_NAME_STOP = rf"(?:\.(?!\s*$|\s+(?:{_FIRST_WORDS})\b))?"
_WORD = r"(?<![A-Za-z'])"

WARS: tuple[Rule, ...] = (rule(r"\bWW(?=[12]\b|I{1,2}\b)", "World War"),)
DOTTED: tuple[Rule, ...] = (
    rule(
        rf"(?<![\w.])(?i:({one_of(_PHRASES)}))(,?)(?!\w)",
        lambda match: _PHRASES[match[1].lower()].rstrip("," if match[2] else "") + match[2],
    ),
    rule(r"(?<![A-Za-z])Ph(?:\.\s?)?D\b(?:\.(?!\s*$))?", "P H D"),
    # U.S.A., a.m.: letters. The last stop stays where it ends the text or a sentence.
    rule(
        r"(?<![A-Za-z.])[A-Za-z](?:\.[A-Za-z](?![A-Za-z])){1,12}" + _NAME_STOP,
        _initials,
    ),
)
RULES: tuple[Rule, ...] = (
    rule(rf"{_WORD}({one_of(_TITLES)})\. (?=[A-Z])", from_table(_TITLES)),
    rule(rf"{_WORD}St(?:\.? (?P<name>(?=[A-Z]))|(?![A-Za-z']){STOP})", _saint_or_street),
    rule(rf"{_WORD}Dr(?:\.? (?P<name>(?=[A-Z]))|(?![A-Za-z']){STOP})", _doctor_or_drive),
    rule(rf"{_WORD}({one_of(_NAMES)})(?![A-Za-z']){_NAME_STOP}", from_table(_NAMES)),
    rule(rf"{_WORD}({one_of(_WORDS)})(?![A-Za-z']){STOP}", from_table(_WORDS)),
    rule(rf"{_WORD}({one_of(_NAMES_WITH_STOP)})(?=\.){_NAME_STOP}", from_table(_NAMES_WITH_STOP)),
    rule(rf"{_WORD}({one_of(_WORDS_WITH_STOP)})(?=\.){STOP}", from_table(_WORDS_WITH_STOP)),
    rule(rf"{_WORD}vs(?![A-Za-z'])\.?", "versus"),
    rule(rf"{_WORD}(?P<title>(?:{_RULING}) )?(?P<name>{_RULERS}) {_ROMAN}", _ruler),
    rule(rf"{_WORD}(?P<what>{_COUNTED}) {_ROMAN}", _counted),
    rule(
        rf"{_WORD}({_ONLY_ROMAN})(?![A-Za-z]|'[A-Z])",
        lambda match: cardinal(_roman(match[1])),
    ),
    rule(rf"{_WORD}({one_of(_STREETS)})(?![A-Za-z']){STOP}", _street),
    rule(rf"(?<![^A-Za-z'][A-Z] )(?<!^[A-Z] ){_WORD}(?:[A-Z]\. ){{2,12}}(?=[A-Z][a-z])", _initials),
    rule(rf"{_WORD}([A-HJ-Z])\. (?=[A-Z][a-z])", _middle_initial),
)
