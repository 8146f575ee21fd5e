"""No secret in a log; the audit log's files."""

import io
import json
import logging
from collections.abc import Iterator
from logging.config import dictConfig
from logging.handlers import MemoryHandler
from pathlib import Path

import pytest

from deployments.guards.audit import AuditRecord
from deployments.guards.audit_log import AuditLog
from deployments.guards.keys import make_key
from deployments.guards.logs import Redactor, keep_open, redacting
from deployments.guards.settings import AuditSettings


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "{{'authorization': 'Bearer {}'}}",
        "[(b'authorization', b'Bearer {}')]",
        "(b'Authorization', b'{}')",
        "authorization={}",
        "sec-websocket-protocol: speech, openai-insecure-api-key.{}",
        "somebody sent {}, which is wrong",
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str) -> None:
    key = make_key()
    hidden = Redactor()(text.format(key))
    assert key not in hidden
    assert "***" in hidden
    assert hidden.replace("***", "") in text.format(key).replace(key, "")


def test_known_secrets_are_hidden_and_words_are_not() -> None:
    redact = Redactor(["plain(text"])
    assert redact("dev=plain(text here") == "dev=*** here"
    for harmless in ("the bearer of news came", "sk-short", "a mask-like-shape-of-things here"):
        assert redact(harmless) == harmless


@pytest.fixture
def lines() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    logger = logging.getLogger("test.guards.logs")
    logger.handlers = [logging.StreamHandler(stream)]
    logger.propagate = False
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(redacting(logging.LogRecord, Redactor()))
    yield logger, stream
    logging.setLogRecordFactory(before)


def test_arguments_and_tracebacks_are_redacted_too(
    lines: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = lines
    key = make_key()
    logger.error("got %s and %d", key, 3)
    try:
        raise RuntimeError(f"bad header {key}")
    except RuntimeError:
        logger.exception("it failed")
    logged = stream.getvalue()
    assert key not in logged
    assert "got *** and 3" in logged
    assert "RuntimeError: bad header ***" in logged


def test_lines_still_reach_the_file_after_somebody_else_has_set_logging_up(
    tmp_path: Path,
) -> None:
    """As vLLM does, which closes all handlers."""
    logger = logging.getLogger("test.guards.buffered")
    file = logging.FileHandler(tmp_path / "log")
    buffer = MemoryHandler(1, target=file)
    buffer.addFilter(lambda record: "dropped" not in record.getMessage())
    logger.handlers, logger.propagate = [buffer], False
    keep_open(logger)
    dictConfig({"version": 1, "disable_existing_loggers": False})
    logger.error("kept")
    logger.error("dropped")
    assert (tmp_path / "log").read_text() == "kept\n"


def record(number: int, **fields: object) -> AuditRecord:
    made = AuditRecord(f"id-{number}", "POST", "/v1/audio/speech")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_a_record_is_one_line_of_json(tmp_path: Path) -> None:
    log = AuditLog(AuditSettings(path=str(tmp_path / "audit.jsonl")))
    log.write(record(1, text="two\nlines \u2028 \ud800", audio="AAAA", seed=2**63 - 1))
    log.close()
    assert log.path == tmp_path / "audit-0.jsonl"
    [line] = log.path.read_bytes().splitlines()
    entry = json.loads(line)
    assert (entry["request_id"], entry["seed"]) == ("id-1", 2**63 - 1)
    assert "text" not in entry
    assert "audio" not in entry
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_text_and_audio_are_written_only_if_the_settings_say_so(tmp_path: Path) -> None:
    settings = AuditSettings(path=str(tmp_path / "a.jsonl"), text=True, audio=True)
    log = AuditLog(settings)
    log.write(record(1, text="Hello.", audio="AAAA"))
    log.close()
    entry = json.loads(log.path.read_text())
    assert (entry["text"], entry["audio"]) == ("Hello.", "AAAA")


def test_files_are_rotated_by_size_and_the_oldest_goes(tmp_path: Path) -> None:
    settings = AuditSettings(path=str(tmp_path / "a.jsonl"), max_bytes=2000, files=3)
    log = AuditLog(settings)
    for number in range(50):
        log.write(record(number))
    log.close()
    files = sorted(p.name for p in tmp_path.glob("a-0.jsonl*") if p.suffix != ".lock")
    assert files == ["a-0.jsonl", "a-0.jsonl.1", "a-0.jsonl.2"]
    kept = [
        json.loads(line)["request_id"]
        for name in reversed(files)
        for line in (tmp_path / name).read_text().splitlines()
    ]
    assert kept == [f"id-{number}" for number in range(50 - len(kept), 50)]
    assert all((tmp_path / name).stat().st_size <= 2000 for name in files)


def test_two_processes_never_share_a_file_and_one_that_has_ended_leaves_it(
    tmp_path: Path,
) -> None:
    settings = AuditSettings(path=str(tmp_path / "a.jsonl"))
    first, second = AuditLog(settings), AuditLog(settings)
    assert [log.path.name for log in (first, second)] == ["a-0.jsonl", "a-1.jsonl"]
    first.write(record(1))
    first.close()
    third = AuditLog(settings)
    third.write(record(2))
    second.close()
    third.close()
    assert third.path == first.path
    assert len(first.path.read_text().splitlines()) == 2


def test_a_disk_that_cannot_be_written_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(AuditSettings(path=str(tmp_path / "a.jsonl")))
    log._file.setStream(Path("/dev/full").open("w"))  # noqa: SIM115
    log.write(record(7))
    log.close()
    assert "id-7" in caplog.text


def test_a_directory_that_is_not_there_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        AuditLog(AuditSettings(path=str(tmp_path / "no" / "a.jsonl")))
