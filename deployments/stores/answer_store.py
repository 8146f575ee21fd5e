"""Audio of answers that a later turn of the conversation may refer to, for a while."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from time import time

from deployments.calls.answer_messages import Codes
from deployments.stores.database import Database
from deployments.stores.voice_store import pack_codes, unpack_codes


@dataclass(frozen=True)
class KeptAnswer:
    """What of an answer is kept.

    Attributes:
        model: that made it, by its id.
        expires: Unix time in seconds.
    """

    id: str
    model: str
    expires: int
    transcript: str
    codes: Codes


class AnswerStore:
    """Answers by id, which nobody can guess. Every method opens a file: not for an event loop.

    Raises:
        ApiError: 503, from every method, if the file cannot be used.
    """

    def __init__(
        self,
        database: Database,
        seconds: float,
        max_answers: int,
        clock: Callable[[], float] = time,
    ) -> None:
        """
        Args:
            seconds: how long an answer is kept.
            max_answers: kept at a time; the oldest goes first.
            clock: Unix time in seconds.
        """
        self._database = database
        self._seconds = seconds
        self._max_answers = max_answers
        self._clock = clock

    def reserve(self) -> tuple[str, int]:
        """An id and when it will expire, for an answer that is about to be made."""
        return f"audio_{uuid.uuid4().hex}", int(self._clock() + self._seconds)

    def keep(self, answer: KeptAnswer) -> None:
        """Keeps an answer until it expires; forgets those that have."""
        codes = answer.codes
        with self._database.transaction() as database:
            database.execute("DELETE FROM answers WHERE expires <= ?", (self._clock(),))
            database.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                (
                    answer.id,
                    answer.model,
                    answer.expires,
                    answer.transcript,
                    codes.shape[1],
                    pack_codes(codes),
                ),
            )
            database.execute(
                "DELETE FROM answers WHERE id IN"
                " (SELECT id FROM answers ORDER BY expires DESC LIMIT -1 OFFSET ?)",
                (self._max_answers,),
            )

    def find(self, answer_id: str) -> KeptAnswer | None:
        """An answer that has not expired."""
        with self._database.transaction() as database:
            row = database.execute(
                "SELECT id, model, expires, transcript, streams, codes FROM answers"
                " WHERE id = ? AND expires > ?",
                (answer_id, self._clock()),
            ).fetchone()
        if row is None:
            return None
        name, model, expires, transcript, streams, codes = row
        return KeptAnswer(name, model, int(expires), transcript, unpack_codes(streams, codes))
