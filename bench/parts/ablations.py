"""What single decisions of the design are worth: each beside what it replaces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from bench.codecs import Subject, demo_codec, in_mid_stream, random_codes
from bench.devices import milliseconds
from bench.document import About
from bench.findings import Chart, Findings, Row, Table
from bench.host import random_heads
from bench.machine import engine_threads
from bench.setting import Setting
from demo_voice.recipe import MODEL
from engine_adapter.families import FAMILIES
from engine_adapter.folders import CODEC_FOLDER
from vocoder_service.schedule import WindowSchedule
from vocoder_service.service import VocoderService
from vocoder_service.vocoder import Vocoder
from vocoder_service.windows import StreamWindows

_WIDTH = 256
_WINDOW = 8
_STREAM_FRAMES = 160
_OBJECT_STORE_BYTES = 128 * 2**20
SCHEDULES = (
    WindowSchedule(8, 1.25, 16),  # serve_config.yaml
    WindowSchedule(8, 1.5, 64),  # the settings' defaults
    WindowSchedule(2, 1.25, 16),
    WindowSchedule(4, 1.25, 16),
    WindowSchedule(16, 1.0, 16),
    WindowSchedule(64, 1.0, 64),
)
Push = Callable[[str, NDArray[np.int64]], Awaitable[object]]

ABOUT = About(
    "Ablations",
    """
With the engine's number of threads, float32, the demo voice's codec.

- *Heads*: the product of the hidden states (width 256) with the rows of the head that can be
  sampled in audio, of all streams at once (*sliced*), with the whole head once per row, the
  streams' biases added after it (*full*), and with the whole head for each stream, as a sum of
  hidden state and stream embedding asks for (*per stream*).
- *Batched vocoder*: windows of 8 frames of several streams, in one call and in one each.
- *Actor*: the same windows through the vocoder service in this process, and in an actor of Ray's on
  this machine, as a replica has it: until the PCM is there, all streams at once. What the actor
  costs is a message; what it saves is that decoding does not hold up the replica's event loop.
- *Window schedule*: a stream of 160 frames, cut as the schedule says. *first audio after* is in
  frames, delay not counted; *gapless below* the RTF of generation below which no listener waits,
  1 / growth.
""",
)


def measure(setting: Setting) -> Findings:
    """All four."""
    before = torch.get_num_threads()
    torch.set_num_threads(engine_threads())
    try:
        with demo_codec(setting.device) as subject:
            streams = setting.choose((1, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64))
            batched = [_batched(subject, count, setting.device) for count in streams]
            schedules = [_schedule(subject, schedule) for schedule in SCHEDULES]
            actor = asyncio.run(_actor(subject, setting))
        heads = [
            _heads(family, rows, setting.device)
            for family in setting.choose(("demo", "bagpiper"), tuple(FAMILIES))
            for rows in setting.choose((1, 32), (1, 32, 128))
        ]
    finally:
        torch.set_num_threads(before)
    return findings(heads, batched, actor, schedules)


@torch.inference_mode()
def _heads(family: str, rows: int, device: str) -> Row:
    spec = FAMILIES[family]
    sliced = random_heads(spec, torch.float32, _WIDTH, device)
    head = torch.randn(spec.vocab_size, _WIDTH, device=device)
    streams = torch.randn(spec.num_streams, _WIDTH, device=device)
    bias = streams @ head.T
    hidden = torch.randn(rows, _WIDTH, device=device)

    def full() -> object:
        return (hidden @ head.T)[:, None] + bias

    def per_stream() -> object:
        return (hidden[:, None] + streams) @ head.T

    times = [milliseconds(work, device) for work in (lambda: sliced(hidden), full, per_stream)]
    candidates = sum(group.ids.numel() for group in sliced.groups)
    return {
        "family": family,
        "ids": spec.vocab_size,
        "candidates": candidates,
        "rows": rows,
        "sliced ms": times[0],
        "full ms": times[1],
        "per stream ms": times[2],
        "full / sliced": times[1] / times[0],
        "logits MB, sliced": 4e-6 * rows * candidates,
        "logits MB, full": 4e-6 * rows * spec.num_streams * spec.vocab_size,
    }


def _batched(subject: Subject, streams: int, device: str) -> Row:
    codec = subject.codec
    codes, state = random_codes(codec, streams, _WINDOW), in_mid_stream(codec, streams)
    one = in_mid_stream(codec, 1)

    def each() -> None:
        for row in codes.split(1):
            codec.advance(row, one, last=False)

    together = milliseconds(lambda: codec.advance(codes, state, last=False), device)
    apart = milliseconds(each, device)
    return {
        "streams": streams,
        "one call ms": together,
        "a call each ms": apart,
        "gain": apart / together,
    }


def _schedule(subject: Subject, schedule: WindowSchedule) -> Row:
    codec = subject.codec
    codes = random_codes(codec, 1, _STREAM_FRAMES)[0].numpy()
    sizes = list(cut(schedule, _STREAM_FRAMES))
    times = []
    for _ in range(3):
        vocoder, stream = Vocoder(codec), StreamWindows(codec, schedule.maximum)
        begun, start = time.perf_counter(), 0
        for size in sizes:
            vocoder.decode(stream.push(codes[start : start + size]))
            start += size
        vocoder.decode(stream.finish())
        times.append(time.perf_counter() - begun)
    seconds = _STREAM_FRAMES / subject.frames_per_second
    return {
        "first": schedule.first,
        "growth": schedule.growth,
        "at most": schedule.maximum,
        "windows": len(sizes),
        "first audio after": schedule.first + codec.right_context,
        "gapless below": 1 / schedule.growth,
        "ms per audio second": 1000 * median(times) / seconds,
    }


def cut(schedule: WindowSchedule, frames: int) -> list[int]:
    """The sizes of a stream's windows; the last takes what is left."""
    sizes: list[int] = []
    for size in islice(schedule.sizes(), frames):
        sizes.append(min(size, frames - sum(sizes)))
        if sum(sizes) == frames:
            break
    return sizes


async def _actor(subject: Subject, setting: Setting) -> list[Row]:
    import ray

    from vocoder_service.actor import VocoderActor

    service = VocoderService(subject.codec)
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=_OBJECT_STORE_BYTES,
    )
    try:
        actor = VocoderActor.remote(str(MODEL / CODEC_FOLDER), device=setting.device)
        await actor.ready.remote()

        async def open_there(stream: str) -> None:
            await actor.open.remote(stream)

        async def open_here(stream: str) -> None:
            service.open(stream)

        rows: list[Row] = []
        for streams in setting.choose((1, 8), (1, 2, 4, 8, 16)):
            here = await _pushes(subject, streams, open_here, service.push)
            there = await _pushes(subject, streams, open_there, actor.push.remote)
            rows.append(
                {
                    "streams": streams,
                    "in process ms": here,
                    "actor ms": there,
                    "more ms": there - here,
                }
            )
        return rows
    finally:
        ray.shutdown()


async def _pushes(
    subject: Subject, streams: int, open_: Callable[[str], Awaitable[None]], push: Push
) -> float:
    """Milliseconds until all streams have the PCM of a window, the median of some windows."""
    codec = subject.codec
    codes = random_codes(codec, streams, 12 * _WINDOW).numpy()
    names = [f"{streams}-{number}" for number in range(streams)]
    for name in names:
        await open_(name)
    times = []
    for window in range(12):
        part = codes[:, window * _WINDOW : (window + 1) * _WINDOW]
        begun = time.perf_counter()
        await asyncio.gather(*(push(name, part[i]) for i, name in enumerate(names)))
        times.append(1000 * (time.perf_counter() - begun))
    return median(times[2:])


def findings(
    heads: Sequence[Row], batched: Sequence[Row], actor: Sequence[Row], schedules: Sequence[Row]
) -> Findings:
    """The four tables."""
    return Findings(
        [
            Table("Heads: sliced, full, per stream", heads),
            Table(
                "Vocoder: one call, or one each",
                batched,
                charts=[Chart("Gain of a batched call", "streams", "gain", logarithmic=True)],
            ),
            Table("Vocoder: in process, or an actor", actor),
            Table("Window schedule", schedules),
        ]
    )
