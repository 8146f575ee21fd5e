"""What a step costs outside of the forward pass and the heads' product."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import product
from pathlib import Path
from statistics import median

import torch

from bench.checkpoints import make_endless
from bench.clients import SpeechClient
from bench.decoding import Decoding
from bench.document import About
from bench.engines import EngineSettings, speech_engine
from bench.findings import Chart, Findings, Row, Table, Verdict
from bench.host import Split, profile
from bench.machine import engine_threads
from bench.setting import Setting
from bench.step_parts import allow, parts, watch
from engine_adapter.families import FAMILIES

LIMIT_MS = 10.0
LIMIT_ROWS = 256
_WIDTH = 64  # of the one-layer model: its forward pass is hardly there

ABOUT = About(
    "Host work",
    """
*Sampling*: `SpeechStep.sample`, what our worker does after the forward pass, on random hidden
states of width 256, split into the heads' product, drawing ids, and the rest (phases, masks,
guidance, history). CPU time of all threads per step, all rows in audio; no engine.

*Whole steps*: an engine with one layer of width 64, so that a step is hardly more than host work:
scheduling, input preparation, sampling, messages. *outside ms* is the engine's CPU time per step
less that of the forward pass and of the heads' product, both noted in the same steps. It should be
under 10 ms at 256 rows and grow no faster than the rows.
""",
)


def measure(setting: Setting) -> Findings:
    """Both, at every number of rows."""
    rows = setting.choose((1, 32, 128, 256, 512), (1, 8, 32, 64, 128, 256, 384, 512))
    before = torch.get_num_threads()
    torch.set_num_threads(engine_threads())
    families = setting.choose(("demo",), tuple(FAMILIES))
    try:
        sampling = [
            _sampling_row(family, count, guided, _profile(family, count, guided))
            for family, count, guided in product(families, rows, (False, True))
            if not (guided and count % 2)
        ]
    finally:
        torch.set_num_threads(before)
    return findings(sampling, asyncio.run(_steps(setting, rows)))


def _profile(family: str, rows: int, guided: bool) -> Split:
    return profile(FAMILIES[family], rows, guided, torch.float32)


def _sampling_row(family: str, rows: int, guided: bool, split: Split) -> Row:
    return {
        "family": family,
        "guidance": "on" if guided else "off",
        "rows": rows,
        "CPU ms": split.total,
        "heads ms": split.heads,
        "drawing ms": split.sampling,
        "rest ms": split.rest,
    }


async def _steps(setting: Setting, rows: tuple[int, ...]) -> list[Row]:
    found: list[Row] = []
    settings = EngineSettings("float32", max(rows), engine_threads())
    allow()
    with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as folder:
        model = make_endless("demo", Path(folder) / "model", _WIDTH, layers=1)
        with speech_engine(model, settings) as engine:
            decoding = Decoding()
            clients = {guided: SpeechClient(engine, guided=guided) for guided in (False, True)}
            await watch(engine)
            await decoding.warm_up(clients[True], max(rows) // 2)
            for count, guided in product(rows, (False, True)):
                if guided and count % 2:
                    continue
                requests = count // 2 if guided else count
                windows = [
                    await decoding.window(clients[guided], requests, setting.choose(64, 96))
                    for _ in range(setting.choose(2, 3))
                ]
                cpu = median(window.engine_cpu_ms for window in windows)
                part = await parts(engine, count)
                found.append(
                    {
                        "guidance": "on" if guided else "off",
                        "rows": count,
                        "ms per step": median(window.step_ms for window in windows),
                        "engine CPU ms": cpu,
                        "forward ms": part["forward"],
                        "heads ms": part["heads"],
                        "outside ms": cpu - part["forward"] - part["heads"],
                    }
                )
    return found


def findings(sampling: list[Row], steps: list[Row]) -> Findings:
    """The tables; the target at 256 rows, and the growth from there to the most rows."""
    verdicts = []
    for guidance in ("off", "on"):
        outside = {
            int(row["rows"] or 0): float(row["outside ms"] or 0)
            for row in steps
            if row["guidance"] == guidance
        }
        most = max(outside)
        growth = (outside[most] / most) / (outside[LIMIT_ROWS] / LIMIT_ROWS)
        name = f"guidance {guidance}"
        verdicts += [
            Verdict(f"outside ms, {LIMIT_ROWS} rows, {name}", outside[LIMIT_ROWS], LIMIT_MS),
            Verdict(f"outside per row, {most} rows over {LIMIT_ROWS}, {name}", growth, 1.1),
        ]
    title = "Outside of forward pass and heads (ms)"
    chart = Chart(title, "rows", "outside ms", ("guidance",), line=LIMIT_MS)
    return Findings(
        [
            Table("Whole steps of a one-layer model", steps, charts=[chart]),
            Table("Sampling", sampling),
        ],
        verdicts,
    )
