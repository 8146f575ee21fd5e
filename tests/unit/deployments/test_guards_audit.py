"""What the audit log learns of a request, however it ends."""

import asyncio
import base64
import json
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from deployments.guards import audit_log
from deployments.guards.audit import Audit, AuditRecord
from deployments.guards.audit_log import AuditLog
from deployments.guards.keys import hash_key
from deployments.guards.runtime import Guards
from deployments.guards.settings import AuditSettings, GuardSettings
from deployments.metrics import emit
from deployments.metrics.sinks import PrometheusSink
from deployments.settings import ServiceSettings
from tests.unit.deployments.answering_stand_in import Front
from tests.unit.deployments.guarded_app import KEY, InProcess, world


def entries(guards: Guards) -> list[dict[str, Any]]:
    assert guards.audit_log is not None
    return [json.loads(line) for line in guards.audit_log.path.read_text().splitlines()]


async def test_every_guarded_request_is_in_the_audit_log_however_it_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    made = world(GuardSettings(audit=AuditSettings(path=path)))
    async with made.client() as http:
        await http.get("/live")
        await http.post("/v1/wait", headers={"x-request-timeout": "0.05"})
        await http.post("/v1/fail")
        await http.get("/v1/hello", headers={"authorization": "Bearer wrong"})
        task = asyncio.create_task(http.post("/v1/wait"))
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        made.release.set()
        await http.post("/v1/speak?seconds=1.5", headers={"x-request-id": "mine"})
    await made.guards.end()
    found = entries(made.guards)
    assert [(e["path"], e["status"], e["end"]) for e in found] == [
        ("/v1/wait", 408, "deadline"),
        ("/v1/fail", 500, "failed"),
        ("/v1/hello", 401, "complete"),
        ("/v1/wait", None, "cancelled"),
        ("/v1/speak", 200, "complete"),
    ]
    assert [e["client"] for e in found] == ["alice", "alice", None, "alice", "alice"]
    last = found[-1]
    assert (last["request_id"], last["model"], last["seed"]) == ("mine", "demo", 7)
    assert (last["output_seconds"], last["output_bytes"]) == (1.5, 4)
    assert last["key_id"] == hash_key(KEY)[7:19]
    assert 0 <= last["first_byte_seconds"] <= last["total_seconds"]
    assert not {"text", "audio", "arrived"} & set(last)


async def test_the_audit_log_has_text_and_audio_if_it_shall(tmp_path: Path) -> None:
    audit = AuditSettings(path=str(tmp_path / "audit.jsonl"), text=True, audio=True)
    made = world(GuardSettings(audit=audit))
    made.release.set()
    async with made.client() as http:
        await http.post("/v1/speak")
        await http.get("/v1/hello")
    await made.guards.end()
    spoken, other = entries(made.guards)
    assert (spoken["text"], spoken["audio"], spoken["media_type"]) == (
        "Hello.",
        "YWJjZA==",
        "audio/pcm",
    )
    assert other["audio"] is None


@pytest.mark.parametrize(("leaves", "end"), [(True, "cancelled"), (False, "failed")])
async def test_audio_that_breaks_off_as_the_client_leaves_is_no_failure(
    leaves: bool, end: str
) -> None:
    left = asyncio.Event()

    async def broken_off(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ab", "more_body": True})
        if leaves:
            asyncio.get_running_loop().call_later(0.05, left.set)
        raise RuntimeError("the audio broke off")

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        pass

    records: list[AuditRecord] = []
    scope = {"type": "http", "method": "POST", "path": "/v1/audio/speech"}
    audit = Audit(broken_off, records.append, keep_audio=False)
    with pytest.raises(RuntimeError):
        await audit({**scope, "state": {"request_id": "mine", "trace": None}}, receive, send)
    [record] = records
    assert (record.status, record.end, record.output_bytes) == (200, end, 2)


@pytest.mark.parametrize("code", [1000, 1001, 1005, 1006])
async def test_a_websocket_whose_client_has_left_is_not_waited_for(code: int) -> None:
    """Serve gives the same disconnect at once, as often as it is asked, and never suspends."""
    asked = 0

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        assert asked < 10, "it goes on for ever"
        return {"type": "websocket.disconnect", "code": code}

    async def send(_: Message) -> None:
        pass

    records: list[AuditRecord] = []
    scope = {"type": "websocket", "path": "/v1/audio/speech/stream", "headers": []}
    audit = Audit(fails, records.append, keep_audio=False)
    with pytest.raises(RuntimeError):
        await audit({**scope, "state": {"request_id": "mine", "trace": None}}, receive, send)
    [record] = records
    assert record.end == ("cancelled" if code == 1006 else "complete")


async def test_the_audit_log_has_the_audio_of_conversations(tmp_path: Path) -> None:
    settings = AuditSettings(path=str(tmp_path / "audit.jsonl"), audio=True)
    guards = Guards.begin(GuardSettings(audit=settings), ServiceSettings(), InProcess(), {})
    front = Front(tmp_path / "store", guards=guards)
    spoken = {
        "model": "dialogue",
        "messages": [{"role": "user", "content": "Hello."}],
        "modalities": ["text", "audio"],
        "audio": {"voice": "default", "format": "pcm16"},
    }
    written = {key: spoken[key] for key in ("model", "messages")}
    refused = {**spoken, "temperature": "1"}
    bodies = [spoken, {**spoken, "stream": True}, written, {**written, "stream": True}, refused]
    answers = [await front.http.post("/v1/chat/completions", json=body) for body in bodies]
    await guards.end()
    kept = [entry["audio"] for entry in entries(guards)]
    whole = [base64.b64encode(answer.content).decode() for answer in answers]
    assert kept == [*whole[:2], None, None, None]


def lost(sink: PrometheusSink) -> dict[str, float | None]:
    name = "speechlm_audit_records_lost_total"
    reasons = ("behind", "disk")
    return {r: sink.registry.get_sample_value(name, {"reason": r}) for r in reasons}


def test_what_a_full_disk_does_not_take_is_counted(tmp_path: Path) -> None:
    (tmp_path / "audit-0.jsonl").symlink_to("/dev/full")
    sink = PrometheusSink()
    with emit.using(sink):
        log = AuditLog(AuditSettings(path=str(tmp_path / "audit.jsonl")))
        assert lost(sink) == {"behind": 0, "disk": 0}
        for number in range(3):
            log.write(AuditRecord(str(number), "POST", "/v1/audio/speech"))
        log.close()
    assert lost(sink) == {"behind": 0, "disk": 3}


def test_what_comes_faster_than_the_disk_writes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the disk waits, with one record in hand and two behind it, until five have come."""
    taken, over = Event(), Event()

    def waits(*_: object) -> None:
        taken.set()
        over.wait()

    monkeypatch.setattr(audit_log, "_MOST_WAITING", 2)
    monkeypatch.setattr(audit_log._File, "emit", waits)
    sink = PrometheusSink()
    with emit.using(sink):
        log = AuditLog(AuditSettings(path=str(tmp_path / "audit.jsonl")))
        log.write(AuditRecord("0", "POST", "/v1/audio/speech"))
        taken.wait()
        for number in range(1, 5):
            log.write(AuditRecord(str(number), "POST", "/v1/audio/speech"))
        over.set()
        log.close()
    assert lost(sink) == {"behind": 2, "disk": 0}
