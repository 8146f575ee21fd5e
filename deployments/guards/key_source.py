"""The keys that hold at this moment, from a file and the environment."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from deployments.guards import keys_file
from deployments.guards.keys import Caller, KeyRing, checked_client, checked_hash, hash_key, key_id
from deployments.guards.settings import ClientLimits, GuardSettings

VARIABLE = "SPEECHLM_API_KEYS"
_POLL_SECONDS = 0.5
_log = logging.getLogger(__name__)

Signature = tuple[int, int, int, int]


def configured(settings: GuardSettings, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a key is needed. A keys file without any key lets nobody in."""
    return settings.keys_file is not None or bool(environment.get(VARIABLE, "").strip())


def environment_keys(value: str, limits: ClientLimits) -> Iterator[tuple[str, Caller]]:
    """The keys of the environment variable.

    Args:
        value: ``CLIENT=KEY`` or ``CLIENT=sha256:...``, with spaces or newlines between.
        limits: of all of them.

    Raises:
        ValueError: it is something else; the message does not quote it.
    """
    for number, part in enumerate(value.split(), 1):
        client, equals, secret = part.partition("=")
        if not equals or len(secret) < 8:
            raise ValueError(
                f"{VARIABLE}: part {number} must be CLIENT=KEY or CLIENT=sha256:..., "
                "and a key has at least 8 characters"
            )
        try:
            hashed = checked_hash(secret) if secret.startswith("sha256:") else hash_key(secret)
        except ValueError as error:
            raise ValueError(f"{VARIABLE}: part {number}: {error}") from None
        try:
            name = checked_client(client)
        except ValueError:
            # Its message quotes what stands in front, which may be the key.
            raise ValueError(
                f"{VARIABLE}: part {number}: in front of = must stand the name of a client"
            ) from None
        yield hashed, Caller(name, key_id(hashed), limits)


def plain_keys(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The keys of the environment that are not hashed, so that no log shows them."""
    parts = environment.get(VARIABLE, "").split()
    secrets = [secret for _, _, secret in (part.partition("=") for part in parts)]
    return [s for s in secrets if s and not s.startswith("sha256:")]


class KeySource:
    """Looks keys up, and follows the file from a thread of its own.

    A file that has become unusable changes nothing: the last good one goes on to hold, which
    an error in the log says, and ``problem``.

    Attributes:
        problem: why the file that is there now is not used, or None.
    """

    def __init__(self, settings: GuardSettings, environment: Mapping[str, str]) -> None:
        """
        Raises:
            KeysFileError: the file cannot be used.
            ValueError: the environment variable cannot be, or a key has two owners.
        """
        self._path = None if settings.keys_file is None else Path(settings.keys_file)
        self._defaults = settings.limits
        self._fixed = list(environment_keys(environment.get(VARIABLE, ""), settings.limits))
        self._stopped = threading.Event()
        self._read: Signature | None = None
        self.problem: str | None = None
        if self._path is not None:
            self._read = _signature(self._path)
        try:
            self._ring = self._load()
        except keys_file.KeysFileError as error:
            raise keys_file.KeysFileError(f"guards.keys_file: {error}") from error

    def find(self, key: str) -> Caller | None:
        """Whose key this is."""
        return self._ring.find(key)

    def follow(self) -> None:
        """Starts to look for changes of the file, twice a second."""
        if self._path is not None:
            threading.Thread(target=self._poll, name="keys", daemon=True).start()

    def stop(self) -> None:
        """Ends ``follow``."""
        self._stopped.set()

    def refresh(self) -> None:
        """Reads the file if it is another than at the last time, or was broken."""
        if self._path is None:
            return
        signature = _signature(self._path)
        if signature == self._read and self.problem is None:
            return
        try:
            self._ring = self._load()
        except keys_file.KeysFileError as error:
            if str(error) != self.problem:
                _log.error("the last good keys stay in force: %s", error)
            self.problem = str(error)
        else:
            self.problem = None
            _log.info("read the keys again: %s", self._path)
        self._read = signature

    def _load(self) -> KeyRing:
        """
        Raises:
            KeysFileError: the file cannot be used.
            ValueError: there is none, and a key has two owners.
        """
        if self._path is None:
            return KeyRing(self._fixed)
        keys = [*self._fixed, *keys_file.load(self._path).keys(self._defaults)]
        try:
            return KeyRing(keys)
        except ValueError as error:
            raise keys_file.KeysFileError(f"{self._path}: {error}") from error

    def _poll(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            self.refresh()


def _signature(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size
