"""Server-sent events, as OpenAI's clients read them."""

from __future__ import annotations

import json
from typing import Any

from deployments.front_end.errors import ApiError

MEDIA_TYPE = "text/event-stream"


def event(data: dict[str, Any]) -> bytes:
    """One event."""
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def failure(error: ApiError) -> bytes:
    """The last event of a stream of typed events that is not whole."""
    return event({"type": "error", **error.body()})


def chat_failure(error: ApiError) -> bytes:
    """The same of a conversation, whose events have no type."""
    return event(error.body())
