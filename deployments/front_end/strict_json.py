"""JSON of which nothing is ignored: a key that stands twice in an object is refused."""

from __future__ import annotations

import json
from typing import Any

from deployments.validation import HALF_A_PAIR, encodable


class NotJson(ValueError):
    """It cannot be used as JSON; the message says why, without a subject."""


def parse(text: str | bytes) -> Any:
    """What a text holds.

    Raises:
        NotJson: nothing that could be understood in one way only.
    """
    try:
        return json.loads(text, object_pairs_hook=_once)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise NotJson(f"is not JSON: {reason} (character {error.pos})") from error
    except UnicodeDecodeError as error:
        raise NotJson("is not UTF-8") from error
    except RecursionError as error:
        raise NotJson("is nested too deeply") from error
    except ValueError as error:  # Python's, of the digits of a number
        raise NotJson("has a number with too many digits") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if not all(map(encodable, whole)):
        raise NotJson(f"has a name that {HALF_A_PAIR}")
    if len(whole) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"has {twice!r} twice in one object")
    return whole
