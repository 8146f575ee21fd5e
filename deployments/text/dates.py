"""Dates, years, weekdays and times of day."""

from __future__ import annotations

import re

from deployments.text.numbers import amount, cardinal, ordinal, plain, plural, year
from deployments.text.rules import DASH, START, Rule, rule, words

_MONTHS = words(
    "January February March April May June July August September October November December"
)
_WEEKDAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_FULL_NAMES = {name[:3]: name for name in _MONTHS + _WEEKDAYS}

_MONTH_SHORT = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|{_MONTH_SHORT})"
_WEEKDAY_SHORT = r"(?:Mon|Tues?|Wed|Thurs?|Thur|Fri|Sat|Sun)\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_SUFFIX = r"(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})(?![,.:]?\d|%)"
_FULL_HOUR = "o'clock"
_NAMES = "|".join(_MONTHS + _WEEKDAYS)
# a.m. or p.m.; its last stop is also that of the sentence if a capital follows that is
# neither a day, a month nor a time zone.
_AFTER_NOON = (
    rf"(?P<half>[AaPp])(?:\.\s?[Mm]\b(?:\.(?!\s*$|\s+[\"'(]?(?!{_NAMES}|{_WEEKDAY_SHORT}|"
    rf"{_MONTH_SHORT}|[ECMP][SD]?T\b|GMT|UTC|Eastern|Central|Mountain|Pacific)[A-Z]))?|[Mm]\b)"
)
_TIME = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d{1,9})?)?"


def _date(month: int, day: int, in_year: str | None) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return _with_year(f"{_MONTHS[month - 1]} {ordinal(day)}", in_year)


def _with_year(spoken: str, in_year: str | None) -> str:
    return f"{spoken}, {year(int(in_year))}" if in_year else spoken


def _year_first(match: re.Match[str]) -> str | None:
    date = _date(int(match["month"]), int(match["day"]), match["year"])
    return f"{date}," if date and match["time"] else date


def _month_day_year(match: re.Match[str]) -> str | None:
    first, second, in_year = int(match[1]), int(match[2]), match[3]
    if len(in_year) == 2:
        in_year = ("20" if int(in_year) < 50 else "19") + in_year
    return _date(first, second, in_year) or _date(second, first, in_year)


def _day_month_year(match: re.Match[str]) -> str | None:
    return _date(int(match[2]), int(match[1]), match[3])


def _day_of_this_year(match: re.Match[str]) -> str | None:
    date = _date(int(match[2]), int(match[3]), None)
    return f"{match[1]} {date}" if date and match[0][-5:].strip() != "9/11" else None


def _name(written: str) -> str:
    return _FULL_NAMES[written[:3]]


def _month_first(match: re.Match[str]) -> str:
    spoken = f"{_name(match['month'])} {ordinal(int(match['day']))}"
    if match["last"]:
        spoken += f" to {ordinal(int(match['last']))}"
    return _with_year(spoken, match["year"])


def _day_first(match: re.Match[str]) -> str:
    the = match.groupdict().get("the") or "the "
    spoken = f"{the}{ordinal(int(match['day']))} of {_name(match['month'])}"
    return _with_year(spoken, match["year"])


def _month_and_year(match: re.Match[str]) -> str:
    return f"{_name(match['month'])} {year(int(match['year']))}"


def _from_to(match: re.Match[str]) -> str:
    return f"{_name(match[1])} to {_name(match[2])}"


def _clock(match: re.Match[str]) -> str:
    hour, minute, half = int(match["hour"]), int(match["minute"]), match["half"]
    second = int(match["second"] or 0)
    if minute:
        spoken = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    elif half:
        spoken = cardinal(hour)
    elif hour == 0:
        spoken = "midnight"
    else:
        spoken = f"{cardinal(hour)} {'hundred' if hour > 12 else _FULL_HOUR}"
    if second:
        spoken += f" and {cardinal(second)} second{'s' * (second > 1)}"
    return f"{spoken} {half.lower()} m" if half else spoken


def _hour(match: re.Match[str]) -> str:
    return f"{amount(match['hour'])} {match['half'].lower()} m"


def _year_and_era(match: re.Match[str]) -> str:
    return f"{year(int(match[1]))} {' '.join(filter(str.isalpha, match[2]))}"


def _early_year(match: re.Match[str]) -> str:
    return f"{match[1]} {year(int(match[2]))}"


def _decade(match: re.Match[str]) -> str:
    return plural(plain(match[1]))


# Before anything else takes the digits apart.
IN_DIGITS: tuple[Rule, ...] = (
    rule(
        START + r"(?P<year>[12]\d{3})([-/.])(?P<month>0?[1-9]|1[0-2])\2"
        r"(?P<day>[12]\d|3[01]|0?[1-9])(?![-/\d])(?P<time>T(?=\d\d:))?",
        _year_first,
    ),
    rule(START + r"(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)(?![\d/])", _month_day_year),
    rule(START + r"(\d{1,2})-(\d{1,2})-([12]\d{3})(?![-\d])", _month_day_year),
    rule(START + r"(\d{1,2})\.(\d{1,2})\.([12]\d{3})(?!\.?\d)", _day_month_year),
    rule(
        r"\b((?i:on|by|until|since|before|after|from|due)) "
        r"(\d{1,2})/(\d{1,2})(?![/\d])",
        _day_of_this_year,
    ),
)
# Behind the ranges, which may join two times.
TIMES: tuple[Rule, ...] = (
    rule(START + _TIME + rf"(?![:\d])(?:\s?{_AFTER_NOON})?", _clock),
    rule(START + rf"(?P<hour>1[0-2]|0?[1-9])\s?{_AFTER_NOON}", _hour),
)
WITHOUT_DIGITS: tuple[Rule, ...] = (
    rule(
        rf"\b({_NAMES}|{_WEEKDAY_SHORT}|{_MONTH_SHORT}){DASH}({_NAMES}|{_WEEKDAY_SHORT}|"
        rf"{_MONTH_SHORT})(?![A-Za-z])",
        _from_to,
    ),
)
WITH_NAMES: tuple[Rule, ...] = (
    rule(START + rf"{_DAY}-{_MONTH}-{_YEAR}", _day_first),
    rule(rf"(?<=\d)\s?{DASH}\s?(?={_MONTH}\s\d)", "to"),
    rule(
        rf"\b({_WEEKDAY_SHORT})(?=,?\s+(?:{_MONTH.replace('?P<month>', '?:')})?\s?\d)",
        lambda match: _name(match[1]),
    ),
    rule(
        rf"\b{_MONTH}\s+{_DAY}{_SUFFIX}\b(?!:\d|[,.]\d|\s?%)"
        rf"(?:\s?(?:{DASH}|to)\s{{0,2}}(?P<last>[12]\d|3[01]|0?[1-9]){_SUFFIX}\b)?"
        rf"(?:,?\s+{_YEAR})?",
        _month_first,
    ),
    rule(
        START + rf"(?<![$£€])\b(?P<the>[Tt]he\s)?{_DAY}{_SUFFIX}\s(?:of\s)?{_MONTH}(?![A-Za-z])"
        rf"(?:,?\s+{_YEAR})?",
        _day_first,
    ),
    rule(rf"\b{_MONTH},?\s+(?P<year>1[1-9]\d\d|20\d\d)(?![,.:]?\d|%)", _month_and_year),
    rule(
        START + r"(\d{1,4})\s?(BCE?\b|CE\b|AD\b|B\.C\.(?:E\.)?|A\.D\.|C\.E\.)(?!\.?\w)",
        _year_and_era,
    ),
    rule(
        r"\b([Ii]n|[Ss]ince|[Uu]ntil|[Yy]ear|[Oo]f|[Cc]irca) (10\d\d)(?![,.:]?\d|[%-])",
        _early_year,
    ),
    rule(START + r"'?\b(\d{4}|\d0)'?s\b", _decade),
)
