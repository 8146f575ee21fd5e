"""A terminal says when a service is not ready, and when it is again."""

from contextlib import suppress

import httpx
import pytest

from deployments.watching import changes

READY = httpx.Response(200, json={"status": "ready"})
LOST = httpx.Response(503, json={"error": {"message": "not ready: demo"}})
ODD = httpx.Response(500, text="Internal Server Error")
NOBODY = httpx.ConnectError("refused")
SLOW = httpx.ReadTimeout("five seconds")


def lines(*answers: httpx.Response | httpx.TransportError) -> list[str]:
    """What is said while these come, one after the other."""
    waiting = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/ready"
        found = next(waiting, None)
        if found is None:
            raise EOFError
        if isinstance(found, httpx.TransportError):
            raise found
        return found

    said: list[str] = []
    transport = httpx.MockTransport(answer)
    client = httpx.Client(transport=transport, base_url="http://localhost")
    with client, suppress(EOFError):  # no more answers
        for line in changes(client, seconds=0):
            said.append(line)
    return said


def test_nothing_is_said_of_a_service_that_is_ready_or_misses_once() -> None:
    assert lines(READY, READY, LOST, READY, NOBODY, READY) == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (LOST, "not ready: demo; what has failed is being replaced"),
        (NOBODY, "nothing answers; the HTTP front end is being replaced"),
        (SLOW, "no answer: the service is very busy, or stuck"),
        (ODD, "the HTTP front end answers 500"),
    ],
)
def test_a_fault_is_said_once_and_its_end_too(
    fault: httpx.Response | httpx.TransportError, reason: str
) -> None:
    first, second = lines(READY, fault, fault, fault, READY, READY)
    assert first == reason
    assert second.startswith("answers again, after ")


def test_keys_that_are_not_used_are_said_once_and_their_end_too() -> None:
    stale = httpx.Response(200, json={"status": "ready", "keys": "stale"})
    said = lines(READY, stale, LOST, stale, stale, READY, READY)
    assert said == [
        "the keys file cannot be used, the last good keys stay in force; the logs say why",
        "the keys file is used again",
    ]
