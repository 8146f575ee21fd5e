"""Log lines: through Serve's logger, with the request's id in each, and without secrets."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Iterable
from logging.handlers import MemoryHandler
from typing import Any

_SERVE = "ray.serve"
_OURS = ("deployments", "engine_adapter", "cfg_pairing", "vocoder_service")
_HIDDEN = "***"
_SECRETS = (
    r"(?i:authorization['\"]?\s*[:=,]\s*(?:b?['\"])?(?:(?:bearer|basic)\s+)?)"
    r"(?P<header>[^\s'\",)]+)",
    r"(?i:\b(?:bearer|basic)\s+)(?P<scheme>[^\s'\",)]{8,})",
    r"openai-insecure-api-key\.(?P<protocol>[^\s'\",)]+)",
    r"(?P<key>\bsk-[A-Za-z0-9_-]{12,})",
)


class Redactor:
    """Replaces secrets in a text: what looks like one, and those that are known."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """
        Args:
            known: secrets that need not look like any.
        """
        exact = [f"(?P<known{i}>{re.escape(s)})" for i, s in enumerate(known)]
        self._pattern = re.compile("|".join([*_SECRETS, *exact]))

    def __call__(self, text: str) -> str:
        return self._pattern.sub(_hide, text)


def _hide(match: re.Match[str]) -> str:
    start, end = match.span(match.lastgroup or 0)
    whole, begin = match[0], match.start()
    return whole[: start - begin] + _HIDDEN + whole[end - begin :]


class _ToServe(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(_SERVE).handle(record)


def configure(known: Iterable[str] = ()) -> None:
    """Sets a replica's logging up.

    Our own loggers write where Serve's does, which adds the request's id. Secrets are taken
    out of every record of the process when it is made, whatever logger it is of.

    Args:
        known: as for ``Redactor``.
    """
    logging.setLogRecordFactory(redacting(logging.LogRecord, Redactor(known)))
    keep_open(logging.getLogger(_SERVE))
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.handlers = [_ToServe()]
        logger.propagate = False
        logger.setLevel(logging.INFO)


def keep_open(logger: logging.Logger) -> None:
    """Lets a logger's buffers out of the way of its files.

    vLLM sets logging up by ``dictConfig``, which closes every handler of the process. A closed
    file opens itself again; a closed buffer, which Serve has before its file, keeps all it gets.
    """
    for handler in list(logger.handlers):
        if isinstance(handler, MemoryHandler) and handler.target is not None:
            target = handler.target
            handler.flush()
            for each in handler.filters:
                target.addFilter(each)
            logger.removeHandler(handler)
            logger.addHandler(target)


def redacting(
    make: Callable[..., logging.LogRecord], redact: Callable[[str], str]
) -> Callable[..., logging.LogRecord]:
    """A factory of log records without secrets."""

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit: the handlers report it, as always
            return record
        safe = redact(message)
        if safe != message:
            record.msg, record.args = safe, None
        if record.exc_info and record.exc_info[0] is not None:
            # Formatters use it as it is, if it is there.
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info))).rstrip()
        return record

    return factory
