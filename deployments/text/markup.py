"""Markdown as the sentences it shows.

Marks go, their text stays: emphasis, headings, quotes, code, the text of links and the
description of images. A heading, paragraph, row or numbered item ends with a full stop, a
bulleted item or cell with a comma. HTML tags go too, and those of SSML and its like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    .enable(["table", "strikethrough"])
    .disable(["code"])  # lines that are only indented
)
# Without any of these nothing in a text is markup.
_MARKS = re.compile(r"[*_`#>\[\]~|<&\\\n]|^[ \t]*(?:[-+]|\d{1,9}[.)])[ \t]")
_INDENTED = re.compile(r"^[ \t]+", re.MULTILINE)
_NESTED = re.compile(r"^(?:(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*){5,}", re.MULTILINE)
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|body|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|"
    r"head|hr|html|i|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|small|span|strike|strong|sub|summary|"
    r"sup|table|tbody|td|th|thead|tr|tt|u|ul|var)(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)
# Of other languages, SSML for instance: nothing else is written like this. A name alone may be one
# that stands for something, <name>, or List<int>: it is a tag only where its end tag follows.
_ATTRIBUTES = (
    r"(?:\s+[\w:.-]{1,60}\s?=\s?(?:\"[^\"<>]{0,500}\"|'[^'<>]{0,500}'|[^\s\"'<>=]{1,200}))"
)
_NAME = r"[A-Za-z][A-Za-z0-9:._-]{0,60}"
_OTHER_TAG = re.compile(
    rf"</{_NAME}\s?>|<{_NAME}{_ATTRIBUTES}{{0,20}}\s?/>|<{_NAME}{_ATTRIBUTES}{{1,20}}\s?>|"
    rf"<\?xml[^<>]{{0,200}}\?>"
)
_END_TAG = re.compile(rf"</({_NAME})\s?>")
_BARE_TAG = re.compile(rf"<({_NAME})>")
_BREAKS = re.compile(r"<(?:/?(?:p|div|li|h[1-6]|tr|break)|br\s?/?)\b[^<>]{0,500}>", re.IGNORECASE)
_ENDS = {
    "heading_close": ".",
    "paragraph_close": ".",
    "bullet_list_close": ".",
    "ordered_list_close": ".",
    "blockquote_close": ".",
    "td_close": ",",
    "th_close": ",",
    "tr_close": ".",
    "hr": ".",
}
_SHORT_LINE = 60  # a line that ends earlier was ended on purpose


class _Sentences:
    """Collects text; an end becomes a mark only if more text follows and none is there."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._end = ""

    def add(self, text: str) -> None:
        if self._end and text.strip():
            last = next((p.rstrip() for p in reversed(self._pieces) if p.strip()), "")
            self._pieces.append("" if not last or last[-1] in ".,!?:;" else self._end)
            self._pieces.append(" ")
            self._end = ""
        self._pieces.append(text)

    def end(self, mark: str) -> None:
        if self._end != ".":
            self._end = mark

    def text(self) -> str:
        return "".join(self._pieces)


def plain(text: str) -> str:
    """The text without Markdown and HTML tags."""
    if not _MARKS.search(text):
        return text
    text = _without_comments(text)
    text = re.sub(r"(?<=\d)\*\*(?=\d)", "^", text)
    text = re.sub(r"(?<=\d)\*(?=\d)", "\u00d7", text)
    text = _NESTED.sub(_flat, _INDENTED.sub("", text))
    sentences = _Sentences()
    for token in _tokens(text.replace("\r\n", "\n").replace("\r", "\n")):
        _block(token, sentences)
    return sentences.text()


def _tokens(text: str) -> Iterator[Token]:
    """The parser's tokens, and the cells it drops: those a row has more than the first row."""
    lines = text.split("\n")
    row: list[str] = []
    for token in _PARSER.parse(text):
        if token.type == "tr_open" and token.map:
            row = escapedSplit(lines[token.map[0]].strip(" \t>"))
            row = row[1:] if not row[0] else row
        elif token.type in ("td_open", "th_open"):
            row = row[1:]
        elif token.type == "tr_close":
            for cell in filter(str.strip, row):
                yield from _PARSER.parseInline(cell.strip())
                yield Token("td_close", "td", -1)
        yield token


def _block(token: Token, sentences: _Sentences) -> None:
    if token.type == "inline":
        _line(token.children or [], sentences)
    elif token.type in ("fence", "code_block"):
        if len(token.info.split()) > 1:  # more than the name of a language
            sentences.add(token.info)
            sentences.end(".")
        for line in token.content.splitlines():
            sentences.add(line)
            sentences.end(".")
    elif token.type == "list_item_open" and token.info:
        sentences.add(f"{token.info}. ")
    elif token.type == "list_item_close":
        sentences.end("." if token.markup in (".", ")") else ",")
    elif token.type in _ENDS and not token.hidden:
        sentences.end(_ENDS[token.type])


def _without_tags(text: str, ended: set[str]) -> str:
    """What is in them stays; ``ended`` has the names of those that have an end tag."""
    text = _TAG.sub("", _BREAKS.sub(", ", text))
    text = _BARE_TAG.sub(lambda match: "" if match[1] in ended else match[0], text)
    return _OTHER_TAG.sub("", text)


def _line(children: list[Token], sentences: _Sentences) -> None:
    line = ""
    ended = {name for token in children for name in _END_TAG.findall(token.content)}
    for place, token in enumerate(children):
        if token.type in ("text", "text_special"):
            line += _without_tags(token.content, ended)
        elif token.type in ("code_inline", "image"):
            line += token.content
        elif token.type in ("softbreak", "hardbreak"):
            following = next((t.content for t in children[place + 1 : place + 4] if t.content), "")
            wanted = len(line) < _SHORT_LINE and following[:1].isupper()
            pause = token.type == "hardbreak" or wanted
            sentences.add(line.rstrip())
            if pause:
                sentences.end(",")
            else:
                sentences.add(" ")
            line = ""
    sentences.add(line)


def _flat(match: re.Match[str]) -> str:
    """Marks in marks, as deep as the parser would no longer follow: only their numbers."""
    return re.sub(r"([.)])", r"\\\1", re.sub("[-+*>]", "", match[0]))


def _without_comments(text: str) -> str:
    first, *others = text.split("<!--")
    for part in others:
        _, end, after = part.partition("-->")
        first += after if end else part
    return first
