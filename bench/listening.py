"""``python -m bench.listening``: what the listeners of a running service hear, and when.

Streams of a model at several loads: time to first audio and what it was spent on, real-time
factor, and whether playback that begins with the first byte ever stands still. docs/latency.md
says what the figures mean. Exit status: 0 when everything was measured, 1 when a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.sessions import progress
from demo_voice.client import Card, Client, Request, connect
from demo_voice.figures import Playback
from demo_voice.texts import held_out
from deployments.commands import CommandError
from deployments.metrics import definitions as d
from deployments.metrics import emit
from deployments.metrics.sinks import PrometheusSink

WARM_UP = 2
"""Streams before the first that counts."""


@dataclass(frozen=True)
class Heard:
    """What was heard of a number of streams at a time.

    Attributes:
        streams: at a time; each begins when the service has answered another one.
        cfg_scale: guidance; 1 is off.
        playbacks: of every stream.
    """

    streams: int
    cfg_scale: float
    playbacks: tuple[Playback, ...]


def continuous(heard: Sequence[Playback], seconds: float) -> float:
    """The share of streams whose longest standstill is shorter than ``seconds``."""
    return sum(stream.underrun < seconds for stream in heard) / len(heard)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def budget(heard: Sequence[Playback]) -> dict[str, float]:
    """Median seconds of each step to the first audio; ``rest`` is what the service does not
    state: HTTP, encoding, the network."""
    names = list(heard[0].spent)
    spent = {name: statistics.median(s.spent[name] for s in heard) for name in names}
    rest = (s.first_audio - sum(s.spent.values()) for s in heard)
    return spent | {"rest": statistics.median(rest)}


def table(loads: Sequence[Heard]) -> str:
    """All loads, times in milliseconds, as Markdown."""
    steps = list(budget(loads[0].playbacks))
    columns: list[tuple[str, Callable[[Heard], str]]] = [
        ("streams", lambda load: str(load.streams)),
        ("guidance", lambda load: f"{load.cfg_scale:g}"),
        *((step, lambda load, step=step: _ms(budget(load.playbacks)[step])) for step in steps),
        ("first audio p50", lambda load: _ms(percentile(_first(load), 0.5))),
        ("p95", lambda load: _ms(percentile(_first(load), 0.95))),
        ("RTF p50", lambda load: f"{percentile(_factors(load), 0.5):.2f}"),
        ("p95", lambda load: f"{percentile(_factors(load), 0.95):.2f}"),
        ("longest standstill", lambda load: _ms(max(s.underrun for s in load.playbacks))),
        ("C50", lambda load: f"{continuous(load.playbacks, 0.05):.0%}"),
        ("C100", lambda load: f"{continuous(load.playbacks, 0.1):.0%}"),
    ]
    rows = [[name for name, _ in columns], ["---"] * len(columns)]
    rows += [[cell(load) for _, cell in columns] for load in loads]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f}"


def _first(load: Heard) -> list[float]:
    return [stream.first_audio for stream in load.playbacks]


def _factors(load: Heard) -> list[float]:
    return [stream.real_time_factor for stream in load.playbacks]


async def measure(client: Client, card: Card, streams: int, count: int, scale: float) -> Heard:
    """Speaks ``count`` sentences, each once, ``streams`` at a time, in both voices in turn."""
    sentences = held_out("everyday")
    requests = iter(
        [
            Request(card.id, card.voices[i % len(card.voices)], text, scale, seed=i)
            for i, text in enumerate(sentences[i % len(sentences)] for i in range(count))
        ]
    )
    playbacks: list[Playback] = []

    async def listen() -> None:
        for request in requests:
            playbacks.append(await client.stream(request))

    await asyncio.gather(*(listen() for _ in range(streams)))
    return Heard(streams, scale, tuple(playbacks))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table and writes the JSON; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        loads = asyncio.run(_run(options))
    except CommandError as error:
        progress(f"failed: {error}")
        return 1
    if options.output is not None:
        options.output.write_text(json.dumps(_to_json(loads), indent=1) + "\n")
    if options.metrics is not None:
        options.metrics.write_text(metrics(loads, options.model))
    print(table(loads))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.listening", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="default: %(default)s")
    parser.add_argument("--model", default="demo-voice", help="default: %(default)s")
    parser.add_argument("--streams", nargs="+", type=int, default=[1, 4, 8], metavar="N")
    parser.add_argument("--count", type=int, default=40, help="sentences of each load")
    parser.add_argument(
        "--guidance", nargs="+", type=float, metavar="SCALE", help="default: the model's own"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    parser.add_argument("--metrics", type=Path, metavar="FILE.prom", help="as docs/metrics.md says")
    return parser


async def _run(options: argparse.Namespace) -> list[Heard]:
    loads = []
    async with connect(options.url) as client:
        card = await client.card(options.model)
        await measure(client, card, 1, WARM_UP, card.cfg_scale)
        for scale in options.guidance or [card.cfg_scale]:
            for streams in options.streams:
                load = await measure(client, card, streams, options.count, scale)
                average = os.getloadavg()[0]
                progress(f"{streams} streams at guidance {scale:g}: load average {average:.1f}")
                loads.append(load)
    return loads


def metrics(loads: Sequence[Heard], model: str) -> str:
    """What was heard, under the names of the service's own metrics, in Prometheus's format."""
    sink = PrometheusSink()
    with emit.using(sink, model=model):
        for load in loads:
            guided = str(load.cfg_scale > 1).lower()
            for heard in load.playbacks:
                _emit(heard, guided)
    return sink.text()


def _emit(heard: Playback, guided: str) -> None:
    asked = {"endpoint": "/v1/audio/speech", "guided": guided, "priority": "standard"}
    emit.observe(d.TIME_TO_FIRST_AUDIO, heard.first_audio, **asked)
    labels = {"task": "speech", "guided": guided}
    emit.observe(d.REAL_TIME_FACTOR, heard.real_time_factor, **labels)
    emit.observe(d.UNDERRUN_SECONDS, heard.underrun, **labels)
    emit.observe(d.AUDIO_LENGTH, heard.audio_seconds, **labels)
    emit.add(d.AUDIO_SECONDS, heard.audio_seconds, **labels)
    for gap in (b - a for a, b in pairwise(heard.arrivals)):
        emit.observe(d.AUDIO_GAP_SECONDS, gap, **labels)


def _to_json(loads: Sequence[Heard]) -> dict[str, Any]:
    return {"machine": describe(), "loads": [asdict(load) for load in loads]}


if __name__ == "__main__":
    sys.exit(main())
