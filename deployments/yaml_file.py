"""YAML files that people write, read as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


class NotYaml(ValueError):
    """The file holds no YAML. The message quotes nothing of it.

    Attributes:
        detail: one line that may quote it.
    """

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


def read(path: Path) -> Any:
    """What a file holds.

    Raises:
        OSError: it cannot be read.
        NotYaml: it is not UTF-8, not YAML, or has a value that is not what it looks like.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except OSError:
        raise
    except UnicodeDecodeError as error:
        raise NotYaml("is not UTF-8", error.reason) from error
    except RecursionError as error:
        raise NotYaml("is nested too deeply", "") from error
    except Exception as error:  # PyYAML's constructors raise whatever they meet: a wrong date
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1})"
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise NotYaml(f"is not YAML{where}", " ".join(str(reason).split())) from error
