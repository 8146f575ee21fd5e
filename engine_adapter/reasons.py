"""What an error says, for a message that names the file itself."""

from __future__ import annotations


def reason(error: BaseException) -> str:
    """In one line, without the number and the file's name that an ``OSError`` has around it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
