"""What a terminal is told of a service that runs: when it is not ready, or its keys file cannot be
used, and when that is over."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx

_SECONDS = 2.0
_STALE = "stale"
_KEYS_STALE = "the keys file cannot be used, the last good keys stay in force; the logs say why"
_KEYS_FINE = "the keys file is used again"
_MISSES = 2  # one may be a machine that is busy


def changes(client: httpx.Client, seconds: float = _SECONDS) -> Iterator[str]:
    """A line whenever the service is not ready any more, or is ready again; without an end.

    Args:
        client: of the service's own URL.
        seconds: from one look to the next.
    """
    misses, since = 0, time.monotonic()
    stale = False
    while True:
        time.sleep(seconds)
        fault, keys = _look(client)
        if keys is not None and (keys == _STALE) != stale:
            stale = not stale
            yield _KEYS_STALE if stale else _KEYS_FINE
        if fault is None:
            if misses >= _MISSES:
                yield f"answers again, after {time.monotonic() - since:.0f} s"
            misses, since = 0, time.monotonic()
            continue
        misses += 1
        if misses == _MISSES:
            yield fault


def _look(client: httpx.Client) -> tuple[str | None, str | None]:
    """Why the service is not ready, or None, and how its keys file is; None: it did not say."""
    try:
        answer = client.get("/ready")
        said = answer.json()
        if answer.status_code == 200:
            return None, str(said.get("keys", ""))
        return f"{said['error']['message']}; what has failed is being replaced", None
    except httpx.TimeoutException:
        return "no answer: the service is very busy, or stuck", None
    except httpx.TransportError:
        return "nothing answers; the HTTP front end is being replaced", None
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"the HTTP front end answers {answer.status_code}", None
