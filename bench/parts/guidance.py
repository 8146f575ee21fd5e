"""What guidance costs, and what it does for the demo voice."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.checkpoints import make_endless
from bench.clients import SpeechClient
from bench.clocks import Clocks
from bench.codecs import demo_codec
from bench.decoding import Decoding
from bench.document import About
from bench.engines import EngineSettings, speech_engine
from bench.findings import Chart, Findings, Row, Table, Verdict
from bench.machine import engine_threads
from bench.setting import Setting
from bench.texts import unique_texts
from demo_voice.judges import Recogniser
from demo_voice.recipe import MODEL
from demo_voice.wer import Errors, word_errors
from vocoder_service.vocoder import Vocoder

if TYPE_CHECKING:
    from engine_adapter.engine import SpeechEngine
    from engine_adapter.request import Result

SCALES = (1.0, 1.5, 2.0, 3.0, 5.0)
_BLOCK = 32
_UNCONDITIONAL = 16 * _BLOCK  # rows of a long unconditional prompt
_FAMILY = "bagpiper"  # writes text before audio

ABOUT = About(
    "Guidance",
    """
*Scales*: everyday sentences through the engine with the demo voice, the same sentences and seeds at
every scale, all at once; 1 is off and takes one row, the others two. *ms per frame* is engine CPU
time over frames of all requests. *word error rate* is a recogniser's, *stopped* the share that the
model ended by itself.

*Rows and requests*: a random model; guided and plain requests with as many rows, and as many
requests, per step.

*Text, then audio*: requests that write 32 text ids and then 32 guided frames. The companion row is
*lazy*: it comes when audio begins. *always on* is what it would cost if it were there from the
start: this engine has no such setting, so a text request of as many ids stands in for each
companion's rows in text.

*Unconditional prompt*: guided requests one after the other with the same unconditional prompt of
512 ids and prompts of their own of 32, with and without the prefix cache. *first row ms* is the
median time to the first row.
""",
)


@dataclass(frozen=True)
class Spoken:
    """What one scale gave.

    Attributes:
        cpu_seconds: of the engine.
        results: of the requests, in order.
    """

    scale: float
    seconds: float
    cpu_seconds: float
    results: Sequence[Result]


def measure(setting: Setting) -> Findings:
    """Three engines, one after the other."""
    texts = list(islice(unique_texts(seed=7), setting.choose(6, 60)))
    spoken = asyncio.run(_scales(texts))
    swept = _judged(spoken, texts, setting.device)
    with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as folder:
        model = make_endless(_FAMILY, Path(folder) / "model", hidden=256, layers=4)
        equal, phases, cached = asyncio.run(_random_model(model, setting, prefix_cache=True))
        _, _, uncached = asyncio.run(_random_model(model, setting, prefix_cache=False))
    return findings(swept, equal, phases, [cached, uncached])


async def _scales(texts: Sequence[str]) -> list[Spoken]:
    from engine_adapter.request import SpeechRequest

    settings = EngineSettings("float32", 2 * len(texts), engine_threads())
    found = []
    with speech_engine(MODEL, settings) as engine:
        clocks = Clocks()

        async def speak(number: int, text: str, scale: float) -> Result:
            request = SpeechRequest(text=text, cfg_scale=scale, seed=number)
            return await engine.generate(engine.prepare(request))

        await speak(0, texts[0], 2.0)
        for scale in SCALES:
            begun = clocks.read()
            results = await asyncio.gather(*(speak(i, t, scale) for i, t in enumerate(texts)))
            ended = clocks.read()
            cpu = ended.engine_cpu - begun.engine_cpu
            found.append(Spoken(scale, ended.wall - begun.wall, cpu, results))
    return found


def _judged(spoken: Sequence[Spoken], texts: Sequence[str], device: str) -> list[Row]:
    recogniser, rows = Recogniser(), []
    with demo_codec(device) as subject:
        vocoder = Vocoder(subject.codec)
        for each in spoken:
            errors = Errors()
            for text, result in zip(texts, each.results, strict=True):
                pcm = vocoder.decode_all(result.codes)
                heard = recogniser.transcribe(pcm, subject.codec.sample_rate)
                errors += word_errors(text, heard)
            frames = sum(len(result.codes) for result in each.results)
            stopped = [result.finish_reason == "stop" for result in each.results]
            row: Row = {
                "scale": each.scale,
                "sentences": len(texts),
                "frames/s": frames / each.seconds,
                "ms per frame": 1000 * each.cpu_seconds / frames,
                "audio s": frames / subject.frames_per_second,
                "word error rate %": 100 * errors.rate,
                "stopped %": 100 * float(np.mean(stopped)),
            }
            rows.append(row)
    return rows


async def _random_model(
    model: Path, setting: Setting, *, prefix_cache: bool
) -> tuple[list[Row], list[Row], Row]:
    """With the prefix cache everything, without it the unconditional prompt alone."""
    most = setting.choose(16, 64)
    settings = EngineSettings("float32", 2 * most, engine_threads())
    options: dict[str, Any] = {"block_size": _BLOCK, "prefix_cache": prefix_cache}
    with speech_engine(model, settings, **options) as engine:
        equal: list[Row] = []
        phases: list[Row] = []
        if prefix_cache:
            equal = await _equal(engine, most, setting)
            phases = await _phases(engine, most)
        prompts = await _unconditional(engine, setting.choose(6, 24))
    return equal, phases, {"prefix cache": "on" if prefix_cache else "off"} | prompts


async def _equal(engine: SpeechEngine, most: int, setting: Setting) -> list[Row]:
    decoding = Decoding()
    plain, guided = (SpeechClient(engine, guided=on) for on in (False, True))
    await decoding.warm_up(guided, most)
    rows: list[Row] = []
    for requests in (most // 2, most):
        for client, name, each in ((plain, "off", 1), (guided, "on", 2)):
            windows = [
                await decoding.window(client, requests, setting.choose(96, 128))
                for _ in range(setting.choose(1, 3))
            ]
            step = median(window.step_ms for window in windows)
            rows.append(
                {
                    "guidance": name,
                    "requests": requests,
                    "rows": requests * each,
                    "ms per step": step,
                    "engine CPU ms": median(window.engine_cpu_ms for window in windows),
                    "frames/s": 1000 * requests / step,
                }
            )
    return rows


async def _phases(engine: SpeechEngine, requests: int) -> list[Row]:
    from engine_adapter.request import SpeechRequest

    length = 32  # text ids, and frames

    async def run(always_on: bool) -> Row:
        clocks = Clocks()

        async def one(number: int, output: Any) -> Result:
            request = SpeechRequest(
                text=f"This is request number {number}, {always_on}.",
                output=output,
                cfg_scale=2.0 if "audio" in output else 1.0,
                unconditional_ids=[1, 2, 3] if "audio" in output else None,
                seed=number,
                max_text_tokens=length,
                max_frames=length if "audio" in output else None,
            )
            return await engine.generate(engine.prepare(request))

        wanted = [(n, "text+audio") for n in range(requests)]
        if always_on:
            wanted += [(requests + n, "text") for n in range(requests)]
        begun = clocks.read()
        results = await asyncio.gather(*(one(n, output) for n, output in wanted))
        ended = clocks.read()
        spoken = results[:requests]
        audio = sum(len(r.raw_ids) - length for r in spoken)
        text = sum(length for _ in wanted)
        return {
            "companion": "always on" if always_on else "lazy",
            "requests": requests,
            "rows generated": text + 2 * audio,
            "frames": sum(len(r.codes) for r in spoken),
            "seconds": ended.wall - begun.wall,
            "engine CPU s": ended.engine_cpu - begun.engine_cpu,
        }

    await run(always_on=False)
    return [await run(always_on) for always_on in (False, True)]


async def _unconditional(engine: SpeechEngine, requests: int) -> Row:
    from engine_adapter.request import SpeechRequest

    text = engine.spec.text
    assert text is not None
    rng = np.random.default_rng(3)
    shared = rng.integers(text.first_id, text.end, _UNCONDITIONAL).tolist()
    first, whole = [], []
    for number in range(requests + 1):
        request = SpeechRequest(
            prompt_ids=rng.integers(text.first_id, text.end, 32).tolist(),
            cfg_scale=2.0,
            unconditional_ids=shared,
            seed=number,
            max_frames=8,
        )
        begun, arrived = time.perf_counter(), list[float]()
        async for _ in engine.stream(engine.prepare(request)):
            arrived.append(time.perf_counter() - begun)
        first.append(1000 * arrived[0])
        whole.append(1000 * arrived[-1])
    return {
        "requests": requests,
        "first row ms": median(first[1:]),  # the first request fills the cache
        "whole ms": median(whole[1:]),
    }


def findings(swept: list[Row], equal: list[Row], phases: list[Row], prompts: list[Row]) -> Findings:
    """The tables; guided steps cost what as many plain rows do."""
    by_load = {(row["guidance"], row["rows"]): row for row in equal}
    shared = [rows for guidance, rows in by_load if guidance == "on" and ("off", rows) in by_load]
    verdicts = [
        Verdict(
            f"guided over plain engine CPU time, {rows} rows",
            _number(by_load["on", rows]["engine CPU ms"])
            / _number(by_load["off", rows]["engine CPU ms"]),
            at_most=1.05,
        )
        for rows in shared
    ]
    charts = [Chart("Word error rate (%)", "scale", "word error rate %")]
    return Findings(
        [
            Table("Scales", swept, charts=charts),
            Table("Rows and requests", equal),
            Table("Text, then audio", phases),
            Table("Unconditional prompt", prompts),
        ],
        verdicts,
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
