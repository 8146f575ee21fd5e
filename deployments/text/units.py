"""Percentages and units of measurement behind a number."""

from __future__ import annotations

import re

from deployments.text.numbers import amount
from deployments.text.rules import MINUS, NUMBER, START, STOP, Rule, one_of, rule

# The written forms of each unit, by the name of one of it.
_FORMS = {
    "kilometer": "km",
    "centimeter": "cm",
    "millimeter": "mm",
    "nanometer": "nm",
    "micrometer": "μm um",
    "meter": "m",
    "mile": "mi",
    "foot": "ft",
    "yard": "yd yds",
    "kilogram": "kg kgs",
    "gram": "g",
    "milligram": "mg",
    "microgram": "μg mcg",
    "pound": "lb lbs",
    "ounce": "oz",
    "fluid ounce": "fl_oz fl._oz",
    "liter": "l L",
    "milliliter": "ml mL",
    "centiliter": "cl",
    "deciliter": "dl",
    "gallon": "gal",
    "quart": "qt",
    "pint": "pt",
    "tablespoon": "tbsp",
    "teaspoon": "tsp",
    "degree Celsius": "°C",
    "degree Fahrenheit": "°F",
    "degree": "°",
    "mile per hour": "mph",
    "kilometer per hour": "km/h kmh kph",
    "meter per second": "m/s",
    "foot per second": "ft/s",
    "mile per gallon": "mpg",
    "revolution per minute": "rpm",
    "beat per minute": "bpm",
    "frame per second": "fps",
    "word per minute": "wpm",
    "hertz": "Hz",
    "kilohertz": "kHz",
    "megahertz": "MHz",
    "gigahertz": "GHz",
    "terahertz": "THz",
    "watt": "W",
    "milliwatt": "mW",
    "kilowatt": "kW",
    "megawatt": "MW",
    "gigawatt": "GW",
    "watt hour": "Wh",
    "kilowatt hour": "kWh",
    "megawatt hour": "MWh",
    "volt": "V",
    "millivolt": "mV",
    "kilovolt": "kV",
    "milliamp": "mA",
    "milliamp hour": "mAh",
    "ohm": "\u03a9",
    "kilohm": "k\u03a9",
    "joule": "J",
    "kilojoule": "kJ",
    "kilocalorie": "kcal",
    "calorie": "cal",
    "pascal": "Pa",
    "hectopascal": "hPa",
    "kilopascal": "kPa",
    "megapascal": "MPa",
    "pound per square inch": "psi",
    "decibel": "dB",
    "kilobyte": "KB kB",
    "megabyte": "MB",
    "gigabyte": "GB",
    "terabyte": "TB",
    "petabyte": "PB",
    "kibibyte": "KiB",
    "mebibyte": "MiB",
    "gibibyte": "GiB",
    "tebibyte": "TiB",
    "kilobit per second": "kbps kbit/s",
    "megabit per second": "Mbps Mbit/s",
    "gigabit per second": "Gbps Gbit/s",
    "megabyte per second": "MB/s",
    "gigabyte per second": "GB/s",
    "nanosecond": "ns",
    "microsecond": "μs",
    "millisecond": "ms",
    "second": "s sec secs",
    "minute": "min mins",
    "hour": "h hr hrs",
    "week": "wk wks",
    "month": "mo mos",
    "year": "yr yrs",
    "pixel": "px",
    "dot per inch": "dpi",
    "megapixel": "MP",
    "hectare": "ha",
    "square foot": "sq_ft ft^2",
    "square mile": "sq_mi mi^2",
    "square meter": "sq_m m^2",
    "square kilometer": "sq_km km^2",
    "square centimeter": "cm^2",
    "square millimeter": "mm^2",
    "cubic meter": "m^3",
    "cubic centimeter": "cm^3",
    "cubic foot": "ft^3",
    "meter per second squared": "m/s^2",
}
_UNITS = {form.replace("_", " "): name for name, forms in _FORMS.items() for form in forms.split()}
_PLURALS = {"foot": "feet"}
_PERIODS = {"d": "day", "wk": "week", "mo": "month", "yr": "year"}

_SIGN = rf"(?P<sign>(?<![^\s(\[]){MINUS})?"
_AMOUNT = _SIGN + START + rf"(?P<number>{NUMBER})"
# "6 s" is six seconds, "6s" is sixes; "100 W Main Street" has no watts; "in" is mostly the word.
_UNIT = (
    rf"(?P<link>\s?|-)(?P<unit>(?<=\s)s|W(?! [A-Z])|{one_of(set(_UNITS) - {'s', 'W'})})"
    r"(?![A-Za-z0-9^]|'[A-Za-z])"
)
_INCHES = "\u2033"
_FRACTION = START + r"(?:\d{1,3} )?\d{1,2}/\d{1,2}"
_PER = r"(?:/(?P<per>day|d|week|wk|month|mo|year|yr|person|second|minute|hour)\b)?"


def several(unit: str) -> str:
    """``mile per hour`` -> miles per hour: the first noun of a unit's name in the plural."""
    head, per, tail = unit.partition(" per ")
    if head.startswith("degree"):
        return unit.replace("degree", "degrees", 1)
    *before, noun = head.split()
    noun = noun if noun.endswith("hertz") else _PLURALS.get(noun, noun + "s")
    return " ".join([*before, noun]) + per + tail


def _measure(match: re.Match[str]) -> str:
    written, unit, per = match["number"], _UNITS[match["unit"]], match["per"]
    single = written == "1" or match["link"] == "-"
    spoken = f"{amount(written)} {unit if single else several(unit)}"
    if match["sign"]:
        spoken = f"minus {spoken}"
    return f"{spoken} per {_PERIODS.get(per, per)}" if per else spoken


def _part(match: re.Match[str]) -> str:
    """Behind a fraction, which stays: half of one, or one and a half of several."""
    unit = _UNITS[match["unit"]]
    return f"{match[1]} {several(unit) if ' ' in match[1] else unit}"


def mark_inches(text: str) -> str:
    """A quotation mark behind a digit is the sign of inches, unless it ends a quotation."""
    *pieces, last = text.split('"')
    opened = False
    marked: list[str] = []
    for piece in pieces:
        inches = not opened and piece[-1:].isdigit()
        marked += [piece, _INCHES if inches else '"']
        opened = opened if inches else not opened
    return "".join([*marked, last])


def _inches(match: re.Match[str]) -> str:
    return f"{amount(match[1])} {'inch' if match[1] == '1' else 'inches'}"


def _feet_and_inches(match: re.Match[str]) -> str:
    feet, inches = match[1], match[2]
    return (
        f"{amount(feet)} {'foot' if feet == '1' else 'feet'} "
        f"{amount(inches)} {'inch' if inches == '1' else 'inches'}"
    )


def _percent(match: re.Match[str]) -> str:
    return f"{'minus ' if match['sign'] else ''}{amount(match['number'])} percent"


_SCALES = {"k": "thousand", "M": "million", "bn": "billion", "mn": "million", "tn": "trillion"}

RULES: tuple[Rule, ...] = (
    rule(_AMOUNT + r"\s?%", _percent),
    rule(START + rf"(\d)'\s?(\d{{1,2}})(?:{_INCHES}|\"|'')", _feet_and_inches),
    rule(START + r"([4-7])'(\d|1[01])(?![\w'\"])", _feet_and_inches),
    rule(START + rf"({NUMBER})(?:\s?in\.(?=\s*$|\s*[a-z,;)])|in\b(?!-)|{_INCHES})", _inches),
    rule(START + r"(\d{1,3})\s?h\s?(\d{1,2})\s?m(?![A-Za-z\d])", r"\1 h \2 min"),
    rule(rf"({_FRACTION}){_UNIT}{STOP}", _part),
    rule(_AMOUNT + _UNIT + _PER + STOP, _measure),
    rule(
        _AMOUNT + r"(?P<scale>[kM]|[bmt]n)(?![A-Za-z\d])",
        lambda match: (
            f"{'minus ' * bool(match['sign'])}{amount(match['number'])} {_SCALES[match['scale']]}"
        ),
    ),
)
