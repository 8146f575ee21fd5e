"""Which ids of a vocabulary are codes of a stream, and which are text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """One codec stream: code ``c`` is the id ``first_id + c``, for ``0 <= c < size``."""

    first_id: int
    size: int
    pad_id: int
    delay: int

    @property
    def end(self) -> int:
        """One past the last code's id."""
        return self.first_id + self.size


@dataclass(frozen=True)
class TextRange:
    """The text vocabulary on stream 0: tokenizer id ``i`` is ``first_id + i``."""

    first_id: int
    size: int
    end_ids: tuple[int, ...]
    min_tokens: int = 1

    @property
    def end(self) -> int:
        """One past the last text id."""
        return self.first_id + self.size
