"""The files of the audit log, written by a thread of their own."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import queue
import threading
from io import TextIOWrapper
from itertools import count
from logging.handlers import RotatingFileHandler
from pathlib import Path

from deployments.guards.audit import AuditRecord
from deployments.guards.settings import AuditSettings
from deployments.metrics import definitions as d
from deployments.metrics import emit

_MOST_WAITING = 10_000  # records; the disk is far behind if there are more
_STOP_SECONDS = 5.0
_log = logging.getLogger(__name__)


class AuditLog:
    """Writes records to a file that no other process writes."""

    def __init__(self, settings: AuditSettings) -> None:
        """
        Raises:
            OSError: there is no such directory, or it cannot be written.
            ValueError: the settings have no path.
        """
        if settings.path is None:
            raise ValueError("there is no path for the audit log")
        self._settings = settings
        self.path, self._claim = _claim(Path(settings.path))
        self._file = _File(self.path, settings)
        for reason in ("behind", "disk"):
            emit.add(d.AUDIT_LOST, 0, reason=reason)
        self._waiting: queue.Queue[AuditRecord | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def write(self, record: AuditRecord) -> None:
        """Takes a record; it is in the file a moment later. Never waits."""
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            emit.add(d.AUDIT_LOST, reason="behind")
            _log.error("the audit log cannot keep up; it lacks request %s", record.request_id)

    def close(self) -> None:
        """Writes what is waiting."""
        self._waiting.put(None)
        self._thread.join(_STOP_SECONDS)
        try:
            self._file.close()
        except OSError as error:
            _log.error("%s: %s", self.path, error.strerror)
        os.close(self._claim)

    def _run(self) -> None:
        while (record := self._waiting.get()) is not None:
            fields = record.fields(text=self._settings.text, audio=self._settings.audio)
            line = json.dumps(fields, ensure_ascii=False)
            self._file.emit(logging.makeLogRecord({"msg": line, "request": record.request_id}))


class _File(RotatingFileHandler):
    def __init__(self, path: Path, settings: AuditSettings) -> None:
        super().__init__(
            path,
            maxBytes=settings.max_bytes,
            backupCount=settings.files - 1,
            encoding="utf-8",
            errors="backslashreplace",
        )

    def _open(self) -> TextIOWrapper:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(handle, "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:
        emit.add(d.AUDIT_LOST, reason="disk")
        request = getattr(record, "request", None)
        _log.error("the audit log lacks request %s", request, exc_info=True)


def _claim(path: Path) -> tuple[Path, int]:
    """The first of the numbered files that no live process has, and what holds it."""
    for number in count():
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
        handle = os.open(f"{candidate}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        return candidate, handle
    raise AssertionError("numbers do not end")
