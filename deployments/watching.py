"""What a terminal is told of a service that runs: when it is not ready, and when it is again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx

_SECONDS = 2.0
_MISSES = 2  # one may be a machine that is busy


def changes(client: httpx.Client, seconds: float = _SECONDS) -> Iterator[str]:
    """A line whenever the service is not ready any more, or is ready again; without an end.

    Args:
        client: of the service's own URL.
        seconds: from one look to the next.
    """
    misses, since = 0, time.monotonic()
    while True:
        time.sleep(seconds)
        fault = _fault(client)
        if fault is None:
            if misses >= _MISSES:
                yield f"answers again, after {time.monotonic() - since:.0f} s"
            misses, since = 0, time.monotonic()
            continue
        misses += 1
        if misses == _MISSES:
            yield fault


def _fault(client: httpx.Client) -> str | None:
    """Why the service is not ready, or None."""
    try:
        answer = client.get("/ready")
        if answer.status_code == 200:
            return None
        return f"{answer.json()['error']['message']}; what has failed is being replaced"
    except httpx.TimeoutException:
        return "no answer: the service is very busy, or stuck"
    except httpx.TransportError:
        return "nothing answers; the HTTP front end is being replaced"
    except (ValueError, KeyError, TypeError):
        return f"the HTTP front end answers {answer.status_code}"
