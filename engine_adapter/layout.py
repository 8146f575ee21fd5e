"""How a family lays out a prompt of several parts, as data.

A *part* is a text, some audio, or a reference of a speaker's voice, and belongs to a role. Each
kind of part has a :class:`Segment`, the marks and the content in rows:

    opens | content | ends | drain | closes

On streams 1 and up the content is shifted by the stream's delay, into the rows of ``ends`` and
``drain``. ``engine_adapter.conversation`` builds the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
Content = Literal["text", "audio", "speaker"]


@dataclass(frozen=True)
class Segment:
    """One kind of part. Ids stand on stream 0, with 0 on the others unless they are content.

    Attributes:
        opens: ids before the content.
        ends: ids right behind it, where delayed streams still have content.
        drain: rows behind those, in which delayed streams end: pads of the streams where the
            content has codes, else zeros.
        closes: ids behind everything, where every stream has ended.
        frames: of audio, exactly so many: longer content is cut, shorter is padded. None
            takes it as it is.
        embedded: of audio, whether its rows are embeddings that an encoder of continuous audio
            makes of it, rather than codes. Nothing of it is delayed.
    """

    role: Role
    content: Content
    opens: tuple[int, ...]
    ends: tuple[int, ...] = ()
    drain: int = 0
    closes: tuple[int, ...] = ()
    frames: int | None = None
    embedded: bool = False

    @property
    def has_codes(self) -> bool:
        """Whether the content is audio, in codes of all streams."""
        return self.content != "text" and not self.embedded


@dataclass(frozen=True)
class Layout:
    """The prompts of one task: ``begin``, the segments of the parts, and what opens the answer.

    Attributes:
        segments: at most one of each role and content. Parts of which there is none cannot be
            taken.
        answers: by output, the ids at the end.
        silent_begin: instead of ``begin`` where neither the parts nor the answer have audio;
            empty: no difference.
        same_role_closes: instead of a segment's ``closes`` where the next part has its role;
            empty: no difference.
    """

    begin: tuple[int, ...]
    segments: tuple[Segment, ...]
    answers: dict[str, tuple[int, ...]]
    silent_begin: tuple[int, ...] = ()
    same_role_closes: tuple[int, ...] = ()

    def segment(self, role: Role, content: Content) -> Segment | None:
        """The segment of a kind of part."""
        for segment in self.segments:
            if (segment.role, segment.content) == (role, content):
                return segment
        return None

    @property
    def hears(self) -> bool:
        """Whether the user's audio can be a part."""
        return self.segment("user", "audio") is not None

    @property
    def speaker(self) -> Segment | None:
        """The segment of a reference of the speaker's voice."""
        return next((s for s in self.segments if s.content == "speaker"), None)

    def ids(self) -> Iterator[int]:
        """Every id it writes by itself."""
        yield from (*self.begin, *self.silent_begin, *self.same_role_closes)
        for segment in self.segments:
            yield from (*segment.opens, *segment.ends, *segment.closes)
        for answer in self.answers.values():
            yield from answer

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Layout:
        """From plain data.

        Raises:
            KeyError, TypeError: a key is unknown or missing, or a value is of the wrong type.
        """
        values = dict(data)
        values["segments"] = tuple(_segment(s) for s in values["segments"])
        values["answers"] = {k: tuple(v) for k, v in values["answers"].items()}
        for key in ("begin", "silent_begin", "same_role_closes"):
            values[key] = tuple(values.get(key, ()))
        return cls(**values)


def _segment(data: dict[str, Any]) -> Segment:
    values = dict(data)
    for key in ("opens", "ends", "closes"):
        values[key] = tuple(values.get(key, ()))
    return Segment(**values)
