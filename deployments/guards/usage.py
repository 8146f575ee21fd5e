"""Audio seconds per client and day, in SQLite, so that a restart does not forget them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from deployments import private_file

_FORGET_SECONDS = 3600.0  # after its last report, a lease is not reported any more

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS usage (
    day INTEGER NOT NULL, client TEXT NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (day, client)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS charged (
    lease TEXT PRIMARY KEY, seconds REAL NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS charged_at ON charged (at);
"""


class Usage:
    """What each client was given, by day.

    Days are numbers, from 0 on 1 January 1970 UTC; times are Unix seconds.
    """

    def __init__(self, path: Path | None) -> None:
        """
        Args:
            path: of the database, made if it is missing; None: in memory.

        Raises:
            sqlite3.Error, OSError: it cannot be used.
        """
        if path is not None:
            private_file.make(path)
        self._database = sqlite3.connect(
            ":memory:" if path is None else path, check_same_thread=False
        )
        self._database.executescript(_SCHEMA)

    def seconds(self, client: str, day: int) -> float:
        """Audio made for a client on a day."""
        row = self._database.execute(
            "SELECT seconds FROM usage WHERE day = ? AND client = ?", (day, client)
        ).fetchone()
        return 0.0 if row is None else float(row[0])

    def charged(self, lease: str) -> float:
        """What of a request has been charged so far."""
        row = self._database.execute(
            "SELECT seconds FROM charged WHERE lease = ?", (lease,)
        ).fetchone()
        return 0.0 if row is None else float(row[0])

    def charge(self, totals: list[tuple[str, str, float]], day: int, now: float) -> None:
        """Charges what is new. Saying the same twice charges it once.

        Args:
            totals: lease, client, and all the audio seconds of the request so far.
            day: to charge what is new to.
        """
        with self._database as database:
            for lease, client, total in totals:
                if total <= 0:
                    continue
                new = total - self.charged(lease)
                # Whether or not there is more: it must not be forgotten while it is reported.
                database.execute(
                    "INSERT INTO charged VALUES (?, ?, ?) ON CONFLICT (lease)"
                    " DO UPDATE SET seconds = max(seconds, excluded.seconds), at = excluded.at",
                    (lease, total, now),
                )
                if new <= 0:
                    continue
                database.execute(
                    "INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT (day, client)"
                    " DO UPDATE SET seconds = seconds + excluded.seconds",
                    (day, client, new),
                )

    def forget(self, now: float) -> None:
        """Removes what no report can need any more; the days stay."""
        with self._database as database:
            database.execute("DELETE FROM charged WHERE at < ?", (now - _FORGET_SECONDS,))

    def close(self) -> None:
        self._database.close()
