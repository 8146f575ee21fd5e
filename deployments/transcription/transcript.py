"""The texts of the parts of a recording, joined, and as subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """One part.

    Attributes:
        start, end: in seconds from the beginning of the recording.
        text: without white space around it.
    """

    start: float
    end: float
    text: str


class Joining:
    """Joins the texts of successive parts by single spaces, while they arrive.

    What it returns adds up to ``text``, whatever pieces the texts come in.
    """

    def __init__(self) -> None:
        self.text = ""
        self._held = ""  # white space that is written only if something follows
        self._ended = False  # the part before this piece

    def piece(self, text: str) -> str:
        """More of the current part; what can be passed on."""
        rest = text.lstrip()
        if not rest:
            self._held += text
            return ""
        held = self._held + text[: len(text) - len(rest)]
        passed = rest.rstrip()
        self._held = rest[len(passed) :]
        if self.text:
            passed = (" " if self._ended else held) + passed
        self._ended = False
        self.text += passed
        return passed

    def end_part(self) -> None:
        """The current part is complete."""
        self._held, self._ended = "", True


def srt(segments: Sequence[Segment]) -> str:
    """SubRip subtitles."""
    cues = [
        f"{number}\n{_time(s.start, ',')} --> {_time(s.end, ',')}\n{_line(s.text)}\n"
        for number, s in enumerate(_spoken(segments), start=1)
    ]
    return "\n".join(cues)


def vtt(segments: Sequence[Segment]) -> str:
    """WebVTT subtitles."""
    cues = [
        f"{_time(s.start, '.')} --> {_time(s.end, '.')}\n{_escaped(_line(s.text))}\n"
        for s in _spoken(segments)
    ]
    return "\n".join(["WEBVTT\n", *cues])


def _spoken(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.text]


def _line(text: str) -> str:
    """Without what ends a cue, or begins the next one."""
    return " ".join(text.split()).replace("-->", "->")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{whole:02}{point}{milliseconds:03}"
