"""Signs, addresses and punctuation, and how they are said."""

import pytest

from deployments.text.english import normalize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("A & B", "A and B"),
        ("AT&T and R&D", "A T and T and R and D"),
        ("2 + 2 = 4", "two plus two equals four"),
        ("x = y / z", "x equals y divided by z"),
        ("me @ home", "me at home"),
        ("5 * 3", "five times three"),
        ("(5 + 3) * 2", "five plus three, times two"),
        ("5 \u00d7 3 ÷ 2", "five times three divided by two"),
        ("2*3*4", "two times three times four"),
        ("2**10", "two to the power of ten"),
        ("x^2 + y^2", "x squared plus y squared"),
        ("10²", "ten squared"),
        ("2⁻¹", "two to the power of minus one"),
        ("a < b and b > c", "a is less than b and b is greater than c"),
        ("x<5", "x is less than five"),
        ("x >= 3", "x is greater than or equal to three"),
        ("x != y", "x is not equal to y"),
        ("A -> B", "A to B"),
        ("±5%", "plus or minus five percent"),
        ("~50 people", "about fifty people"),
        ("C++ and C#", "C plus plus and C sharp"),
        ("#news", "hashtag news"),
        ("@user", "at user"),
        ("and/or", "and or"),
        ("TCP/IP", "T C P slash I P"),
        ("w/o sugar, w/ milk", "without sugar, with milk"),
        ("100°", "one hundred degrees"),
        ("© 2020", "copyright twenty twenty"),
        ("a ≈ b", "a approximately b"),
        ("∞", "infinity"),
        ("item(s)", "items"),
        ("foo()", "foo"),
        ("snake_case", "snake case"),
        ("=====", ""),
        ("π", "pi"),
        ("\u03b1-helix", "alpha helix"),
    ],
)
def test_a_sign_has_a_name(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("https://example.com/docs", "example dot com slash docs"),
        ("See example.com.", "See example dot com."),
        ("www.example.co.uk", "w w w dot example dot co dot U K"),
        (
            "http://localhost:8000/v1/models",
            "localhost colon eight thousand slash version one slash models",
        ),
        (
            "example.com/a-b_c?q=1&r=2#top",
            "example dot com slash a dash b underscore c question mark q equals one "
            "and r equals two hash top",
        ),
        ("john.smith@example.com", "john dot smith at example dot com"),
        ("user+tag@mail.example.org", "user plus tag at mail dot example dot org"),
        ("github.com/user/repo", "github dot com slash user slash repo"),
        ("main.py and README.md", "main dot P Y and readme dot M D"),
        ("Node.js", "Node dot J S"),
        ("docs/http.md", "docs slash h t t p dot M D"),
        ("finished.it was", "finished. it was"),
        ("/usr/bin", "slash usr slash bin"),
        ("C:\\Users", "C, backslash Users"),
        ("end.Start", "end. Start"),
    ],
)
def test_an_address_is_said_sign_by_sign(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("\u201cCurly\u201d \u2018quotes\u2019", "Curly quotes"),
        ('He said "no."', "He said no."),
        ("a \u2014 b", "a, b"),
        ("a -- b", "a, b"),
        ("Wait... what?", "Wait, what?"),
        ("Wait… What?", "Wait. What?"),
        ("So...", "So."),
        ("Really??!!", "Really?"),
        ("Wow!!!", "Wow!"),
        ("a; b: c", "a, b, c"),
        ("Note:", "Note."),
        ("(hello)", "hello"),
        ("one (two) three", "one, two, three"),
        ("Hello (you).", "Hello, you."),
        ("[sic]", "sic"),
        ("'tis rock 'n' roll", "tis rock n roll"),
        ("the dogs' bones", "the dogs bones"),
        ("I can't, don't", "I can't, don't"),
        ("state-of-the-art", "state of the art"),
        ("a\u2013b", "a b"),
        ("  two   spaces ", "two spaces"),
        ("a\tb", "a b"),
        ("Hello , world !", "Hello, world!"),
        ("Hello :) there :D", "Hello there"),
        ("...and then", "and then"),
    ],
)
def test_punctuation_becomes_pauses(written: str, spoken: str) -> None:
    assert normalize(written) == spoken
