"""Whether the files that the settings name can be written, before anything is started."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from deployments.guards.settings import GuardSettings
from deployments.guards.usage import Usage
from deployments.settings import ServiceSettings
from engine_adapter.reasons import reason


def check(guards: GuardSettings, service: ServiceSettings) -> None:
    """
    Raises:
        ValueError: a file cannot be written; the message begins with the setting's name.
    """
    if guards.audit.path is not None:
        _check_folder("guards.audit.path", Path(guards.audit.path).parent)
    if guards.usage_file is not None and guards.limited:
        try:
            Usage(Path(guards.usage_file)).close()
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"guards.usage_file: {guards.usage_file}: {reason(error)}") from error
    elif guards.usage_file is not None:  # nothing to count now, but once a limit is set
        _check_folder("guards.usage_file", Path(guards.usage_file).parent)
    # Its folders are made when it is first needed.
    folders = Path(service.store).absolute().parents
    _check_folder("service.store", next(folder for folder in folders if folder.exists()))


def _check_folder(setting: str, folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{setting}: cannot write in {folder}: {error.strerror}") from error
