"""A front end whose files cannot grow any more, in a process of its own.

``python -m tests.faults.full_disk DIRECTORY`` says as JSON what it answers: before, while no file
may be larger than a limit, and afterwards.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
from pathlib import Path
from typing import Any

from deployments.guards.audit import AuditRecord
from deployments.guards.audit_log import AuditLog
from deployments.guards.settings import AuditSettings
from deployments.metrics import emit
from deployments.metrics.sinks import PrometheusSink
from tests.unit.deployments.answering_stand_in import Front, tone, wav

_LIMIT_BYTES = 400_000
_RECORDING = wav(tone(3))


async def _voices(directory: Path) -> dict[str, Any]:
    front = Front(directory / "store" / "store.sqlite3", max_voices=100)
    answers: dict[str, Any] = {"full": [], "modes": []}

    async def add(name: str) -> Any:
        files = {"audio_sample": ("a.wav", _RECORDING)}
        return await front.http.post("/v1/audio/voices", data={"name": name}, files=files)

    answers["before"] = (await add("first")).status_code
    answers["modes"] = [f"{f.stat().st_mode & 0o777:o}" for f in (directory / "store").iterdir()]
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT_BYTES, hard))
    for number in range(8):
        answer = await add(f"voice-{number}")
        answers["full"].append([answer.status_code, answer.json().get("error")])
    answers["listed"] = (await front.http.get("/v1/audio/voices")).status_code
    _audit(directory)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    answers["after"] = (await add("last")).status_code
    voices = (await front.http.get("/v1/audio/voices")).json()["data"]
    answers["kept"] = [voice["name"] for voice in voices if not voice["built_in"]]
    return answers


def _audit(directory: Path) -> None:
    log = AuditLog(AuditSettings(path=str(directory / "audit.jsonl"), text=True))
    log.write(AuditRecord("fits", "POST", "/v1/audio/speech"))
    for number in range(3):
        log.write(AuditRecord(f"lost-{number}", "POST", "/", text="x" * 2 * _LIMIT_BYTES))
    log.close()


def main(directory: Path) -> None:
    """Everything, with errors of logs at standard error."""
    logging.basicConfig(level=logging.ERROR)
    sink = PrometheusSink()
    emit.use(sink)
    answers = asyncio.run(_voices(directory))
    counted = {
        sample.labels["reason"]: sample.value
        for metric in sink.registry.collect()
        for sample in metric.samples
        if sample.name == "speechlm_refused_requests_total"
    }
    print(json.dumps({**answers, "counted": counted}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
