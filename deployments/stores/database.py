"""A SQLite file that several front ends of one machine share."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments import private_file
from deployments.front_end.errors import ApiError

_log = logging.getLogger(__name__)
_BUSY_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS voices (
    name TEXT PRIMARY KEY, created INTEGER NOT NULL, consent TEXT, audio BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS voice_codes (
    voice TEXT NOT NULL REFERENCES voices (name) ON DELETE CASCADE,
    created INTEGER NOT NULL, encoder TEXT NOT NULL, streams INTEGER NOT NULL,
    codes BLOB NOT NULL, PRIMARY KEY (voice, encoder)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    id TEXT PRIMARY KEY, model TEXT NOT NULL, expires REAL NOT NULL, transcript TEXT NOT NULL,
    streams INTEGER NOT NULL, codes BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_expire ON answers (expires);
"""


class Database:
    """The file. Each use opens it anew, so that any thread and any process may."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: made with its directories when it is first used.
        """
        self._path = path
        self._made = False

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything that is done in it, or, if it ends with an error, nothing.

        Raises:
            ApiError: 503, the file cannot be used, or made.
        """
        try:
            with self._connection() as connection, connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            _log.error("the store cannot be used: %s", error)
            raise ApiError(
                503, "the service cannot read or keep recordings now", code="store_unavailable"
            ) from error

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not self._made:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            private_file.make(self._path)  # recordings of voices are in it
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            if not self._made:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
                self._made = True
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
        finally:
            connection.close()
