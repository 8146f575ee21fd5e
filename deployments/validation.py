"""Pydantic's errors in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from engine_adapter.request import MAX_SEED
from engine_adapter.sampling_defaults import MAX_COUNT, MAX_TEMPERATURE
from engine_adapter.spec import MAX_CFG_SCALE

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
"""Of everything that a client sends as JSON."""


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


INTEGRAL = BeforeValidator(_integral)
"""Takes 7.0 for 7, which are the same number in JSON."""
Whole = Annotated[int, INTEGRAL]


Seed = Annotated[int, Field(ge=0, le=MAX_SEED), INTEGRAL]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT), INTEGRAL]
Scale = Annotated[float, Field(ge=1, le=MAX_CFG_SCALE)]
Temperature = Annotated[float, Field(ge=0, le=MAX_TEMPERATURE)]
Probability = Annotated[float, Field(gt=0, le=1)]
"""What ``engine_adapter.request`` takes, so that a description can say so."""


HALF_A_PAIR = "is not valid Unicode: it has half of a surrogate pair"


def encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8: JSON can have half of a surrogate pair in it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _encodable(text: str) -> str:
    if not encodable(text):
        raise ValueError(HALF_A_PAIR)
    return text


Encodable = Annotated[str, AfterValidator(_encodable)]
"""A text that can be written as UTF-8."""


_SENTENCES = {
    "extra_forbidden": "is not a known field",
    "missing": "is required",
    "string_unicode": HALF_A_PAIR,
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} {unit}",
    "too_long": "must have at most {max_length} {unit}",
    "union_tag_not_found": "has no {discriminator}",
    "union_tag_invalid": "has the {discriminator} {tag!r}; it can be {expected_tags}",
}
"""What pydantic's commonest errors say here, with what it knows of each."""


MODEL_ID = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"
HTTP_URL = r"^https?://"
_PATTERNS = {
    MODEL_ID: "must be made of letters, digits and . _ -, in parts with / between",
    HTTP_URL: "must begin with http:// or https://",
}
"""In words, what they ask for."""


def sentence(error: Any) -> str:
    """What one of pydantic's errors says, without where it was."""
    kind = error["type"]
    context = {name: _integral(value) for name, value in error.get("ctx", {}).items()}
    context["unit"] = "characters" if isinstance(error.get("input"), str) else "items"
    if kind in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "is empty"
    if "discriminator" in context:
        context["discriminator"] = context["discriminator"].strip("'")
    if context.get("pattern") in _PATTERNS:
        return _PATTERNS[context["pattern"]]
    if kind in _SENTENCES:
        return _SENTENCES[kind].format_map(context)
    message = str(error["msg"]).removeprefix("Value error, ")
    if message.startswith("Expected UploadFile"):  # FastAPI's, of a form
        return "must be a file"
    return message[:1].lower() + message[1:]


def foremost(errors: Sequence[Any]) -> Any:
    """The one of pydantic's errors to tell of.

    An unknown field goes first: where a name is misspelt, the right one is missing, too.
    """
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def first_field(errors: Sequence[Any], given: Any = None) -> tuple[str | None, str]:
    """The field at fault, by its name at the top level, and a message.

    Args:
        errors: pydantic's.
        given: what was validated; None: pydantic's locations are taken as they are.

    Returns:
        The name, and a message that begins with the way to what is wrong, which begins with the
        name: ``messages[0].content[1].input_audio.data: is empty``.
    """
    error = foremost(errors)
    first, *others = (error["loc"] if given is None else _way(error, given)) or [None]
    if first is None:
        return None, sentence(error)
    inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in others)
    return str(first), f"{first}{inside}: {sentence(error)}"


def _way(error: Any, given: Any) -> list[str | int]:
    """The names and indices that lead to what is wrong.

    Pydantic's locations also have the branches of unions in them. Those are told apart by following
    the location through what was validated.
    """
    way: list[str | int] = []
    at, last = given, len(error["loc"]) - 1
    chosen = False  # the branch of the object that is reached
    for index, part in enumerate(error["loc"]):
        if isinstance(part, int):
            at = at[part] if isinstance(at, list) and part < len(at) else None
        elif not isinstance(at, Mapping):
            continue
        elif not chosen and index < last and part in (at.get("role"), at.get("type")):
            chosen = True
            continue
        elif part in at or (index == last and error["type"] == "missing"):
            at = at.get(part)
        else:
            continue
        way.append(part)
        chosen = False
    return way
