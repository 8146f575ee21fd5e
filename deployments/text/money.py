"""Amounts of money."""

from __future__ import annotations

import re
from typing import NamedTuple

from deployments.text.numbers import amount, cardinal
from deployments.text.rules import DASH, MINUS, NUMBER, START, Rule, one_of, rule


class _Currency(NamedTuple):
    one: str
    several: str
    hundredth: str = "cent"
    hundredths: str = "cents"


_POUND = _Currency("pound", "pounds", "penny", "pence")
_EURO = _Currency("euro", "euros")
_YEN = _Currency("yen", "yen", "sen", "sen")
_SIGNS = {
    "$": _Currency("dollar", "dollars"),
    "£": _POUND,
    "€": _EURO,
    "¥": _YEN,
    "₹": _Currency("rupee", "rupees", "paisa", "paise"),
    "₽": _Currency("ruble", "rubles", "kopek", "kopeks"),
    "₩": _Currency("won", "won", "jeon", "jeon"),
    "₺": _Currency("lira", "lira", "kurus", "kurus"),
}
_CODES = {
    "USD": _Currency("U S dollar", "U S dollars"),
    "EUR": _EURO,
    "GBP": _POUND,
    "JPY": _YEN,
    "CHF": _Currency("Swiss franc", "Swiss francs", "centime", "centimes"),
    "CAD": _Currency("Canadian dollar", "Canadian dollars"),
    "AUD": _Currency("Australian dollar", "Australian dollars"),
}
_CURRENCIES = _SIGNS | _CODES
_COUNTRIES = {
    "US": "U S ",
    "CA": "Canadian ",
    "C": "Canadian ",
    "AU": "Australian ",
    "A": "Australian ",
}
_SCALES = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
_PERIODS = {"hr": "hour", "h": "hour", "wk": "week", "mo": "month", "yr": "year"}

_SIGN = rf"(?P<sign>(?<![^\s(\[]){MINUS})?"
_NUMBER = rf"(?P<number>{NUMBER})"
_SCALE = (
    r"(?:\s?(?P<short>[mbt]n|[kKmMbBtT])(?![A-Za-z])|"
    r"[\s-](?P<long>hundred|thousand|million|billion|trillion)\b)?"
)
_PER = (
    r"(?:\s?/\s?(?P<per>hour|hr|h|day|week|wk|month|mo|year|yr|person|night|minute|unit|user|"
    r"kg|lb|gallon|share)\b)?"
)
_FROM, _TO = rf"(?P<from>{NUMBER})", rf"(?P<to>{NUMBER})"


def _money(match: re.Match[str]) -> str:
    found = match.groupdict()
    currency, written = _CURRENCIES[found["currency"]], found["number"]
    country = _COUNTRIES.get(found.get("country") or "", "")
    scale = found["long"] or _SCALES.get((found["short"] or "")[:1].lower())
    if scale:
        spoken = f"{amount(written)} {scale} {country}{currency.several}"
    else:
        spoken = _sum(written, currency, country)
    if found["sign"] or found.get("inner"):
        spoken = f"minus {spoken}"
    per = found["per"]
    return f"{spoken} per {_PERIODS.get(per, per)}" if per else spoken


def _sum(written: str, currency: _Currency, country: str) -> str:
    whole, _, fraction = written.replace(",", "").partition(".")
    if len(fraction) not in (0, 2):
        return f"{amount(written)} {country}{currency.several}"
    spoken = f"{amount(whole or '0')} {country}{currency.one if whole == '1' else currency.several}"
    rest = int(fraction or 0)
    if not rest:
        return spoken
    small = f"{cardinal(rest)} {currency.hundredth if rest == 1 else currency.hundredths}"
    return f"{spoken} and {small}" if whole.strip("0") else small


def _range(match: re.Match[str]) -> str:
    several = _CURRENCIES[match["currency"]].several
    scale = f"{match['scale']} " if match["scale"] else ""
    return f"{amount(match['from'])} to {amount(match['to'])} {scale}{several}"


def _cents(match: re.Match[str]) -> str:
    return f"{amount(match[1])} cent{'s' * (match[1] != '1')}"


RANGES: tuple[Rule, ...] = (
    rule(
        rf"(?P<currency>{one_of(_SIGNS)}){_FROM}\s?{DASH}\s?{_TO}(?!\d|\s?[%kKmMbBtT](?![A-Za-z]))"
        r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?",
        _range,
    ),
)
AMOUNTS: tuple[Rule, ...] = (
    rule(r"\bRs\.?\s?(?=\d)", "₹"),
    rule(
        rf"{_SIGN}(?:\b(?P<country>US|CA|AU|C|A))?(?P<currency>{one_of(_SIGNS)}|"
        rf"\b(?:{one_of(_CODES)}))\s?(?P<inner>{MINUS})?{_NUMBER}{_SCALE}{_PER}",
        _money,
    ),
    rule(
        _SIGN + START + rf"{_NUMBER}{_SCALE}\s?(?P<currency>(?:{one_of(_SIGNS)})(?!\d)|"
        rf"(?:{one_of(_CODES)})\b){_PER}",
        _money,
    ),
    rule(START + r"(\d{1,3})\s?" + "¢", _cents),
)
