"""Pydantic's errors in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


INTEGRAL = BeforeValidator(_integral)
"""Takes 7.0 for 7, which are the same number in JSON."""
Whole = Annotated[int, INTEGRAL]


def encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8: JSON can have half of a surrogate pair in it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _encodable(text: str) -> str:
    if not encodable(text):
        raise ValueError("has half of a surrogate pair")
    return text


Encodable = Annotated[str, AfterValidator(_encodable)]
"""A text that can be written as UTF-8."""


def sentence(error: Any) -> str:
    """What one of pydantic's errors says, without where it was."""
    if error["type"] == "extra_forbidden":
        return "is not a known field"
    if error["type"] == "missing":
        return "is required"
    if error["type"] == "union_tag_invalid":
        field, tags = error["ctx"]["discriminator"], error["ctx"]["expected_tags"]
        return f"has the {field.strip(chr(39))} {error['ctx']['tag']!r}; it can be {tags}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def first_field(errors: Sequence[Any]) -> tuple[str | None, str]:
    """The field at fault, by its name at the top level, and a message that begins with it.

    Args:
        errors: pydantic's.
    """
    location = errors[0]["loc"]
    if not location:
        return None, sentence(errors[0])
    return str(location[0]), f"{location[0]}: {sentence(errors[0])}"
