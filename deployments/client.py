"""A running service, as the commands that ask it see it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from deployments.commands import CommandError

KEY_VARIABLE = "SPEECHLM_API_KEY"

# What httpx says where a machine is there and no service.
_REFUSED = ("Connection refused", "All connection attempts failed")
# Generation may take long; whether something listens is known at once.
TIMEOUT = httpx.Timeout(None, connect=5)


def authorization() -> dict[str, str]:
    """The header with the key of the environment; none where there is no key.

    Raises:
        CommandError: it can be no key; the message does not quote it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise CommandError(
            f"{KEY_VARIABLE}: is no API key: it has a space, or a character that is not ASCII"
        )
    return {"authorization": f"Bearer {key}"} if key else {}


@contextmanager
def failures_told(url: str) -> Iterator[None]:
    """Has whoever typed the command told what went wrong between it and the service at ``url``.

    Raises:
        CommandError: nothing listens there, or a request failed.
    """
    try:
        yield
    except httpx.ConnectError as error:
        if not any(words in str(error) for words in _REFUSED):
            raise CommandError(f"cannot connect to {url}: {error}") from error
        raise CommandError(f"nothing listens at {url}; start it with: speechlm serve") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandError(f"{url}: {error or type(error).__name__}") from error


def checked(answer: httpx.Response) -> httpx.Response:
    """The answer, whose content has been read.

    Raises:
        CommandError: it is an error.
    """
    if answer.is_success:
        return answer
    message = error_message(answer, answer.text.strip())
    raise CommandError(f"the service answered {answer.status_code}: {message}")


def error_message(answer: httpx.Response, otherwise: str) -> str:
    """What an error says, or ``otherwise`` where it is none of ours."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return otherwise


def card_of(cards: Sequence[dict[str, Any]], model: str | None) -> dict[str, Any]:
    """The entry of a model in those of ``/v1/models``; the first one's, if none is named.

    Raises:
        CommandError: there is no such model.
    """
    card = next((card for card in cards if model in (None, card["id"])), None)
    if card is None:
        raise CommandError(f"there is no model {model!r}")
    return card
