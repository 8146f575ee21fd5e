"""The keys file: YAML with the clients, the hashes of their keys, and their limits."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from deployments import yaml_file
from deployments.guards.keys import PREFIX, Caller, checked_client, checked_hash, key_id
from deployments.guards.settings import ClientLimits
from deployments.validation import foremost

_HEADER = "# API keys of speechlm-serve. Only hashes: the keys themselves are not kept.\n"


class KeysFileError(ValueError):
    """The file cannot be used; the message names the file and what is wrong."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class KeyEntry(_Strict):
    """What is kept of a key.

    Attributes:
        created: day, for people.
    """

    hash: Annotated[str, AfterValidator(checked_hash)]
    created: str | None = None


class ClientEntry(_Strict):
    """A client.

    Attributes:
        limits: instead of those of the settings, each that is given; null lifts one.
    """

    keys: list[KeyEntry] = []
    limits: ClientLimits = ClientLimits()

    def limits_over(self, defaults: ClientLimits) -> ClientLimits:
        """The client's limits."""
        own = self.limits.model_dump(exclude_unset=True)
        return defaults.model_copy(update=own)


class KeysFile(_Strict):
    """The whole file."""

    clients: dict[Annotated[str, AfterValidator(checked_client)], ClientEntry]

    def keys(self, defaults: ClientLimits) -> Iterator[tuple[str, Caller]]:
        """Hash and owner of every key.

        Args:
            defaults: limits of the settings.
        """
        for name, client in self.clients.items():
            limits = client.limits_over(defaults)
            for key in client.keys:
                yield key.hash, Caller(name, key_id(key.hash), limits)

    def add(self, client: str, hashed: str) -> None:
        """
        Raises:
            ValueError: no client can be called so.
        """
        entry = self.clients.get(checked_client(client), ClientEntry())
        created = datetime.now(UTC).date().isoformat()
        entry.keys = [*entry.keys, KeyEntry(hash=hashed, created=created)]
        self.clients = {**self.clients, client: entry}  # assigned, so that it counts as set

    def revoke(self, identifier: str) -> str | None:
        """Removes a key by its id.

        Returns:
            Whose it was; None: there is no such key.
        """
        for name, client in self.clients.items():
            kept = [key for key in client.keys if key_id(key.hash) != identifier]
            if len(kept) < len(client.keys):
                client.keys = kept
                return name
        return None


def load(path: Path) -> KeysFile:
    """
    Raises:
        KeysFileError: it is missing, empty, not YAML, or has an unknown key or a bad value.
    """
    try:
        data = yaml_file.read(path)
        if data is None:  # an accident, and no way to lock everybody out
            raise KeysFileError(f"{path}: is empty; to let nobody in, write clients: {{}}")
        return KeysFile.model_validate(data)
    except ValidationError as error:
        raise KeysFileError(f"{path}: {_fault(error)}") from None
    except yaml_file.NotYaml as error:
        # Not its detail: that quotes the file, and a key may stand there by mistake.
        raise KeysFileError(f"{path}: {error}") from None
    except OSError as error:
        raise KeysFileError(f"{path}: {error.strerror}") from error


def _fault(error: ValidationError) -> str:
    """Where it is and what it says, without anything that may be a key."""
    first = foremost(error.errors())
    way = list(first["loc"])
    if not way:
        return "must be a mapping with the key clients"
    if way[-1] == "[key]":  # of a mapping, whose fault quotes it where it may
        del way[-2:]
    where = ".".join("..." if str(part).startswith(PREFIX) else str(part) for part in way)
    return f"{where}: {yaml_file.sentence(first)}"


@contextmanager
def editing(path: Path) -> Iterator[KeysFile]:
    """The content of a file, which is written back in one go, unless an error is raised.

    A file that does not exist begins empty, and only its owner can read it. Comments are lost.

    Raises:
        KeysFileError: it cannot be read.
        OSError: it cannot be written.
    """
    real = path.resolve()
    directory = os.open(real.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # of two at once, the second sees the first's
        content = load(path) if path.exists() else KeysFile(clients={})
        yield content
        _write(real, content)
    finally:
        os.close(directory)


def _write(path: Path, content: KeysFile) -> None:
    data = content.model_dump(exclude_unset=True)
    handle, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_HEADER + yaml.safe_dump(data, sort_keys=False))
            file.flush()
            os.fsync(file.fileno())
            if path.exists():
                status = path.stat()
                os.fchmod(file.fileno(), status.st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
