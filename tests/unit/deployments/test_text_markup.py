"""Markdown and HTML, and what is said of them."""

import pytest

from deployments.text.english import normalize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Bold**, *italic*, __bold__ and _italic_", "Bold, italic, bold and italic"),
        ("~~old~~ new", "old new"),
        ("un*frigging*believable", "unfriggingbelievable"),
        ("the `code` here", "the code here"),
        ("See [the docs](https://example.com/docs).", "See the docs."),
        ("![a cat](cat.png)", "a cat"),
        ("<https://example.com>", "example dot com"),
        ("# Title\n\nText", "Title. Text"),
        ("# Really?\n\nText", "Really? Text"),
        ("Title\n=====\nText", "Title. Text"),
        ("One.\n\nTwo", "One. Two"),
        ("- milk\n- eggs\n- bread", "milk, eggs, bread"),
        ("Buy:\n\n* milk\n* eggs\n\nThen go.", "Buy, milk, eggs. Then go."),
        ("1. Wash\n2. Rinse", "one. Wash. two. Rinse"),
        ("1984. A great year.", "nineteen eighty four. A great year."),
        ("- one\n    - two\n        - three", "one, two, three"),
        ("- one\n\n  more of it\n- two", "one. more of it. two"),
        ("> quoted\n> text", "quoted text"),
        ("| Name | Age |\n|---|---|\n| Bob | 5 |\n| Al | 6 |", "Name, Age. Bob, five. Al, six"),
        ("```python\nx = 1\ny = 2\n```", "x equals one. y equals two"),
        ("above\n\n---\n\nbelow", "above. below"),
        ("a\n```\nx = 1\n```. Then we left", "a. x equals one. Then we left"),
        ("| A | B |\n|---|---|\n| *one* | two | **three** | four", "A, B. one, two, three, four"),
        ("> | A | B |\n> |---|---|\n> | one |\n> | | two | three |", "A, B. one. two, three"),
        (r"5 \* 3 and \_x\_", "five times three and x"),
        ("#5 is alive", "number five is alive"),
        ("snake_case stays", "snake case stays"),
        ("2*3*4", "two times three times four"),
    ],
)
def test_markdown_goes_and_its_text_stays(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("<b>bold</b> text", "bold text"),
        ("one<br>two<br/>three", "one, two, three"),
        ("<p class='x'>one</p><p>two</p>", "one, two"),
        ("a <!-- hidden --> b", "a b"),
        ("Tom &amp; Jerry", "Tom and Jerry"),
        ("&copy; 2020 &mdash; all", "copyright twenty twenty, all"),
        ("it&#39;s", "it's"),
        ("5 < 7 and 9 > 8", "five is less than seven and nine is greater than eight"),
        ("use <name> here", "use name here"),
        ("<speak>It is <emphasis level='strong'>big</emphasis>.</speak>", "It is big."),
        ("Wait <break time='1s'/> now.", "Wait, now."),
        ("one<break/>two", "one, two"),
        ('<say-as interpret-as="date">May 5</say-as> it is', "May fifth it is"),
    ],
)
def test_html_goes_and_its_text_stays(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Roses are red\nViolets are blue", "Roses are red, Violets are blue"),
        ("Dear John,\nThanks", "Dear John, Thanks"),
        ("a line that\ngoes on", "a line that goes on"),
        ("one  \ntwo", "one, two"),
        (
            "This line is so long that whatever wrote it has surely wrapped it before\nMonday came",
            "This line is so long that whatever wrote it has surely wrapped it before Monday came",
        ),
    ],
)
def test_a_short_line_is_a_pause_if_a_capital_follows(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize("mark", ["> ", "- ", "* ", "1. ", "2) ", "> - 1. "])
def test_nothing_is_lost_however_deep_it_is_nested(mark: str) -> None:
    assert normalize(mark * 60 + "treasure").endswith("treasure")


def test_nothing_is_lost_however_far_it_is_indented() -> None:
    lines = [f"{'  ' * depth}- item {depth}" for depth in range(60)]
    assert normalize("\n".join(lines)).count("item") == 60
