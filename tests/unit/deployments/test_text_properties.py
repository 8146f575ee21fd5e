"""What holds for every text."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deployments.text.english import Normalized, normalize, normalize_with_report

# Of everything that a rule looks for, in any order and with anything between.
FRAGMENTS = """
Dr. St. St Mr. Gen. Rep. Henry King V I VIII X Part Chapter World War WWII WW2 USA NASA OK STOP
DON'T I'M IT FBI CPUs USA's Ave. Rd. Main Pl. km kg html mRNA iOS MySQL pH PhD Ph.D. e.g. i.e. etc.
vs. No. pp. U.S. U.S.A. a.m. P.M. 5 12 1999 007 1,000 3.14 .5 1/2 3/14/2015 2015-03-14 7:45 12:00:30
8:00 March May Jan. Mon Sat. 3rd 1990s $ £ $5 $4.50 10% % - -- \u2013 \u2014 ... . , ; : ! ?
' " ( ) [ ] { } | / \\ * ** _ ` ``` # @ & &amp; + = < > <b> </b> <!-- --> ~ ^ ² ½ °
km/h lb in. ft x \u00d7 -> >= <3 :) 555-123-4567 +1 MA 02139 J. K. Smith John A a the He The http://a.b/c?
www.x.com a@b.co main.py w/ w/o and/or (s) 's - 1. é Ж 世 \u03b1 μ \U0001f600
""".split()  # noqa: SIM905
LONG_ROWS = ["-", "[", "A", "a.", ".", ". ", ",", ";", "(", ")", "<", ">", "'", "`", "|", "/", "&"]
LONG_ROWS += ["1,", "1-", "1/", "a-", "a@", "a\n", "A. ", "Ж", "é", "½", "<!--", "- "]
SEPARATORS = ["", " ", "\n", "\n\n", "\u200b"]
fragments = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(SEPARATORS)), max_size=12
).map(lambda pairs: "".join(fragment + separator for fragment, separator in pairs))
texts = st.one_of(st.text(), fragments, st.text(st.characters(codec="ascii")))


@given(texts)
@settings(max_examples=400, deadline=None)
def test_the_output_has_only_letters_and_plain_punctuation(text: str) -> None:
    spoken = normalize(text)
    assert re.fullmatch(r"(?:[A-Za-z'][A-Za-z ',.?!]*)?", spoken)
    assert "  " not in spoken
    assert spoken == spoken.strip()


@given(texts)
@settings(max_examples=400, deadline=None)
def test_what_is_normal_stays_as_it_is(text: str) -> None:
    spoken = normalize(text)
    assert normalize_with_report(spoken) == Normalized(spoken, ())


@given(st.text(st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), min_size=1))
@example("\N{MODIFIER LETTER APOSTROPHE}")
@settings(deadline=None)
def test_a_letter_is_spoken_or_reported(text: str) -> None:
    result = normalize_with_report(f"x {text}")
    apostrophes = "\N{MODIFIER LETTER APOSTROPHE}\N{MODIFIER LETTER PRIME}"  # letters to Unicode
    if any(character.isalnum() for character in text if character not in apostrophes):
        assert result.text.lower() not in ("", "x") or result.unspeakable


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        ("1", 100_000),
        ("*", 100_000),
        ("a", 100_000),
        *((piece, 10_000) for piece in LONG_ROWS),
    ],
)
def test_a_long_row_of_anything_is_read_in_linear_time(piece: str, size: int) -> None:
    """In quadratic time the long rows would take longer than a test may."""
    spoken = normalize(piece * (size // len(piece)))
    assert len(spoken) <= 12 * size
