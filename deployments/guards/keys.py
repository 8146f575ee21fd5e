"""API keys: what one looks like, what is kept of it, whose it is.

A key is 256 random bits, so a plain SHA-256 of it cannot be guessed backwards: the slow, salted
hashes that passwords need would only make every request slow.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from deployments.guards.settings import ClientLimits

PREFIX = "sk-speechlm-"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CLIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ID_DIGITS = 12
ANONYMOUS = "anonymous"  # whoever comes where no key is needed


def make_key() -> str:
    """A new key, to be shown once."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """What is kept of a key: ``sha256:`` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def key_id(hashed: str) -> str:
    """The name of a key in lists and logs: the first digits of its hash."""
    return hashed.removeprefix("sha256:")[:_ID_DIGITS]


def checked_hash(hashed: str) -> str:
    """
    Raises:
        ValueError: it is not a hash as ``hash_key`` makes them.
    """
    if not _HASH.fullmatch(hashed):
        raise ValueError("a hash is sha256: and 64 hexadecimal digits")
    return hashed


def checked_client(name: str) -> str:
    """
    Raises:
        ValueError: no client can be called so.
    """
    if name.startswith(PREFIX):
        raise ValueError("a key stands where the name of its client must")
    if not _CLIENT.fullmatch(name) or name == ANONYMOUS:
        raise ValueError(
            f"client {name!r}: a name has 1 to 64 letters, digits and . _ -, begins with a "
            f"letter or digit, and is not {ANONYMOUS!r}"
        )
    return name


@dataclass(frozen=True)
class Caller:
    """Who sends a request.

    Attributes:
        client: one of the keys file or environment, or ``ANONYMOUS``.
        key_id: of the key that was used; None for ``ANONYMOUS``.
    """

    client: str
    key_id: str | None
    limits: ClientLimits


class KeyRing:
    """Every key that opens the service."""

    def __init__(self, keys: Iterable[tuple[str, Caller]]) -> None:
        """
        Args:
            keys: hash and owner of each.

        Raises:
            ValueError: a key has two owners.
        """
        self._by_id: dict[str, list[tuple[str, Caller]]] = {}
        owners: dict[str, str] = {}
        for hashed, caller in keys:
            owner = owners.setdefault(hashed, caller.client)
            if owner != caller.client:
                raise ValueError(
                    f"the key {key_id(hashed)} is that of two clients, {owner} and {caller.client}"
                )
            self._by_id.setdefault(key_id(hashed), []).append((hashed, caller))

    def find(self, key: str) -> Caller | None:
        """Whose key this is.

        Which digits of the hash select a candidate can be told from the time this takes, but
        they are no secret and say nothing about the key. The rest is compared in constant time.
        """
        hashed = hash_key(key)
        found = None
        for candidate, caller in self._by_id.get(key_id(hashed), ()):
            if hmac.compare_digest(candidate, hashed):
                found = caller
        return found
