"""What decoding costs, for each codec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch

from bench.codecs import (
    PUBLISHED,
    Subject,
    demo_codec,
    in_mid_stream,
    published,
    random_codes,
    tiny,
)
from bench.devices import milliseconds
from bench.document import About
from bench.findings import Chart, Findings, Row, Table
from bench.machine import engine_threads
from bench.setting import Setting

BATCHES = (1, 2, 4, 8, 16, 32)
WINDOWS = (1, 2, 4, 8, 16, 32, 64)
_WINDOW = 16  # while the batch grows

ABOUT = About(
    "The vocoder",
    """
Windows in mid-stream of random codes, as the service decodes them: what a layer must know of the
frames before is remembered, nothing is decoded twice. With the engine's number of threads, float32.
*parameters* are those of what decodes. *tiny* codecs have the real kernels and strides and few
channels; those *as published* have the sizes of the published models and random weights (`full`
only). A codec's *ms per audio second* below 1000 is faster than real time for one stream.
""",
)


def measure(setting: Setting) -> Findings:
    """Every codec, every batch at one window, every window of one stream."""
    batches, windows = setting.choose((BATCHES[:5], WINDOWS[2:]), (BATCHES, WINDOWS))
    before = torch.get_num_threads()
    torch.set_num_threads(engine_threads())
    cost: list[Row] = []
    by_batch: list[Row] = []
    by_window: list[Row] = []
    try:
        for made in _subjects(setting):
            with made as subject:
                cost.append(_cost(subject, setting.device))
                by_batch += [_batch(subject, size, setting.device) for size in batches]
                by_window += [_window(subject, size, setting.device) for size in windows]
    finally:
        torch.set_num_threads(before)
    return findings(cost, by_batch, by_window)


def _subjects(setting: Setting) -> Iterator[AbstractContextManager[Subject]]:
    yield demo_codec(setting.device)
    for kind in PUBLISHED:
        yield tiny(kind, setting.device)
    if setting.profile == "full":
        for kind in PUBLISHED:
            yield published(kind, setting.device)


def decode_ms(subject: Subject, batch: int, window: int, device: str) -> float:
    """One call of the codec for so many windows in mid-stream."""
    codes = random_codes(subject.codec, batch, window)
    state = in_mid_stream(subject.codec, batch)
    return milliseconds(lambda: subject.codec.advance(codes, state, last=False), device, rounds=3)


def _per_audio_second(subject: Subject, batch: int, window: int, ms: float) -> float:
    return ms * subject.frames_per_second / (batch * window)


def _cost(subject: Subject, device: str) -> Row:
    codec = subject.codec
    one = decode_ms(subject, 1, _WINDOW, device)
    return {
        "codec": subject.name,
        "parameters (M)": subject.parameters / 1e6,
        "Hz": codec.sample_rate,
        "frames/s": subject.frames_per_second,
        "codebooks": codec.num_codebooks,
        "right context": codec.right_context,
        "ms per audio second": _per_audio_second(subject, 1, _WINDOW, one),
    }


def _batch(subject: Subject, batch: int, device: str) -> Row:
    ms = decode_ms(subject, batch, _WINDOW, device)
    return {
        "codec": subject.name,
        "windows": batch,
        "ms per call": ms,
        "ms per audio second": _per_audio_second(subject, batch, _WINDOW, ms),
    }


def _window(subject: Subject, window: int, device: str) -> Row:
    ms = decode_ms(subject, 1, window, device)
    return {
        "codec": subject.name,
        "frames": window,
        "ms per call": ms,
        "ms per audio second": _per_audio_second(subject, 1, window, ms),
    }


def findings(cost: list[Row], by_batch: list[Row], by_window: list[Row]) -> Findings:
    """The three tables."""
    title = "Milliseconds per audio second"
    return Findings(
        [
            Table("Cost of each codec, one stream, windows of 16 frames", cost),
            Table(
                "Windows of 16 frames, decoded together",
                by_batch,
                charts=[Chart(title, "windows", "ms per audio second", ("codec",), True)],
            ),
            Table(
                "Windows of one stream",
                by_window,
                charts=[Chart(title, "frames", "ms per audio second", ("codec",), True)],
            ),
        ]
    )
