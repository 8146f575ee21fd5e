"""Texts of parts joined as they arrive, and subtitles."""

from hypothesis import given
from hypothesis import strategies as st

from deployments.transcription.transcript import Joining, Segment, srt, vtt

WORDS = st.lists(st.text("ab \n", max_size=6), max_size=6)


@given(st.lists(WORDS, max_size=5))
def test_pieces_add_up_to_the_parts_joined_by_spaces(parts: list[list[str]]) -> None:
    joining, passed = Joining(), []
    for part in parts:
        passed += [joining.piece(piece) for piece in part]
        joining.end_part()
    stripped = ["".join(part).strip() for part in parts]
    assert "".join(passed) == joining.text == " ".join(filter(None, stripped))


SEGMENTS = [
    Segment(0.0, 1.5, "Hello\nthere."),
    Segment(2.0, 3.0, ""),
    Segment(3599.9996, 3661.25, "<b> & --> x"),
]


def test_subrip() -> None:
    assert srt(SEGMENTS) == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n"
        "2\n01:00:00,000 --> 01:01:01,250\n<b> & -> x\n"
    )
    assert srt([]) == ""


def test_webvtt() -> None:
    assert vtt(SEGMENTS) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello there.\n\n"
        "01:00:00.000 --> 01:01:01.250\n&lt;b&gt; &amp; -&gt; x\n"
    )
    assert vtt([]) == "WEBVTT\n"
