"""Internet addresses, e-mail addresses, file names: their signs are said."""

from __future__ import annotations

import re

from deployments.text.rules import Rule, rule, word_set

_SIGNS = {
    ".": "dot",
    "/": "slash",
    "-": "dash",
    "_": "underscore",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
    "+": "plus",
    "@": "at",
    ":": "colon",
    "~": "tilde",
}
_LABEL = r"[A-Za-z0-9-]{1,63}"
# Without those that are words: a full stop without a space behind it is no dot.
_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|tv|fm|ly|gg|xyz|tech|online|site|blog|"
    "cloud|uk|ca|au|nz|ie|de|fr|es|nl|ch|se|dk|fi|pl|pt|cz|eu|ru|jp|cn|kr|br"
)
_FILES = (
    "py|js|ts|jsx|tsx|md|txt|rst|html|htm|css|json|yaml|yml|toml|xml|csv|tsv|pdf|doc|docx|xls|xlsx|"
    "ppt|pptx|png|jpg|jpeg|gif|svg|webp|mp3|mp4|wav|flac|ogg|avi|mov|mkv|zip|tar|gz|exe|sh|bat|"
    "cpp|hpp|rs|java|rb|php|sql|log|ini|cfg|conf|ipynb|dll|iso"
)
# Endings that are read as words; the others are spelled.
_WORDS = word_set(
    "app bat biz blog cloud com conf dev doc docx flac gif gov info java jpeg json log me mil net "
    "online org site tar tech toml wav xyz yaml zip"
)
_PATH = r"(?:[/?#][^\s<>\"]{0,2000})?"


def _address(match: re.Match[str]) -> str:
    address = match[1].rstrip(".,;:!?')]}*_")
    tail = match[1][len(address) :]
    host, slash, path = address.rstrip("/").partition("/")
    return _host(host) + (_said("/" + path) if slash else "") + tail


def _host(host: str) -> str:
    name, dot, last = host.rpartition(".")
    return f"{_said(name)} dot {_ending(last)}" if dot else _said(host)


def _file(match: re.Match[str]) -> str:
    return f"{_said(match[1])} dot {_ending(match[2])}"


def _email(match: re.Match[str]) -> str:
    return f"{_said(match[1])} at {_host(match[2])}"


def _ending(text: str) -> str:
    if text.isalpha() and (text.lower() in _WORDS or len(text) > 4):
        return text
    return " ".join(text.upper()) if text.isalpha() else _said(text)


def _said(text: str) -> str:
    return "".join(f" {_SIGNS[sign]} " if sign in _SIGNS else sign for sign in text)


RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.+-])([\w.+-]{1,64})@((?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})\b", _email),
    rule(r"(?<![\w])(?:[Hh]ttps?|HTTPS?|ftp)://([^\s<>\"]{1,2000})", _address),
    rule(
        rf"(?<![\w@./-])((?:www\.(?:{_LABEL}\.){{1,8}}[a-z]{{2,24}}|"
        rf"(?:{_LABEL}\.){{1,8}}(?:{_DOMAINS})){_PATH})(?<!\w\.)(?![\w-])",
        _address,
    ),
    rule(rf"(?<![\w.])([\w-]{{1,60}}(?:\.[\w-]{{1,20}}){{0,3}})\.({_FILES})\b(?!\.\w|')", _file),
)
