"""Voices that clients have recorded, and their codes for each model, on disk."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from deployments.calls.answer_messages import Codes
from deployments.stores.database import Database

_STORED = np.dtype("<i4")


class VoiceExists(ValueError):
    """There is a voice of that name."""


class TooManyVoices(ValueError):
    """No further voice can be stored."""


@dataclass(frozen=True)
class StoredVoice:
    """One voice.

    Attributes:
        created: Unix time in seconds.
        consent: what its owner gave as consent, if anything.
    """

    name: str
    created: int
    consent: str | None = None


class VoiceStore:
    """Voices by name. Every method opens a file: not for an event loop.

    Raises:
        ApiError: 503, from every method, if the file cannot be used.
    """

    def __init__(self, database: Database, max_voices: int) -> None:
        self._database = database
        self._max_voices = max_voices

    def add(self, voice: StoredVoice, audio: bytes) -> None:
        """Stores a voice with its recording, as it was uploaded.

        Raises:
            VoiceExists, TooManyVoices: it is not stored.
        """
        with self._database.transaction() as database:
            [count] = database.execute("SELECT count(*) FROM voices").fetchone()
            if count >= self._max_voices:
                raise TooManyVoices(f"{count} voices are stored, and no more may be")
            try:
                database.execute(
                    "INSERT INTO voices VALUES (?, ?, ?, ?)",
                    (voice.name, voice.created, voice.consent, audio),
                )
            except sqlite3.IntegrityError as error:
                raise VoiceExists(f"there is a voice {voice.name!r}") from error

    def remove(self, name: str) -> bool:
        """Removes a voice and all that is kept of it; whether there was one."""
        with self._database.transaction() as database:
            found = database.execute("DELETE FROM voices WHERE name = ?", (name,)).rowcount > 0
        return found

    def voices(self) -> list[StoredVoice]:
        """All of them, by name."""
        with self._database.transaction() as database:
            rows = database.execute("SELECT name, created, consent FROM voices ORDER BY name")
            return [StoredVoice(*row) for row in rows]

    def find(self, name: str) -> StoredVoice | None:
        """One of them."""
        with self._database.transaction() as database:
            row = database.execute(
                "SELECT name, created, consent FROM voices WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else StoredVoice(*row)

    def audio(self, name: str) -> bytes | None:
        """The recording, as it was uploaded."""
        with self._database.transaction() as database:
            row = database.execute("SELECT audio FROM voices WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def codes(self, voice: StoredVoice, encoder: str) -> Codes | None:
        """Codes of a voice, if they are known.

        Args:
            encoder: see ``ModelAudio.encoder``.
        """
        with self._database.transaction() as database:
            row = database.execute(
                "SELECT streams, codes FROM voice_codes"
                " WHERE voice = ? AND created = ? AND encoder = ?",
                (voice.name, voice.created, encoder),
            ).fetchone()
        return None if row is None else unpack_codes(*row)

    def keep_codes(self, voice: StoredVoice, encoder: str, codes: Codes) -> None:
        """Keeps codes as long as their voice is stored; those of another one are dropped."""
        with self._database.transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO voice_codes SELECT name, created, ?, ?, ? FROM voices"
                " WHERE name = ? AND created = ?",
                (encoder, codes.shape[1], pack_codes(codes), voice.name, voice.created),
            )


def pack_codes(codes: Codes) -> bytes:
    """Codes ``[frames, streams]`` as bytes."""
    return codes.astype(_STORED).tobytes()


def unpack_codes(streams: int, data: bytes) -> Codes:
    """The inverse of :func:`pack_codes`."""
    return np.frombuffer(data, _STORED).astype(np.int32).reshape(-1, streams)
