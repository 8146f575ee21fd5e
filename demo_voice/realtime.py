"""Whether streamed speech comes fast enough to be listened to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from demo_voice.client import Client, Request
from demo_voice.figures import Playback
from demo_voice.sources import sentences

TOGETHER = 8
"""Streams at a time."""

_ROUNDS = 3


async def measure(
    client: Client, model: str, voices: Sequence[str], cfg_scale: float
) -> tuple[list[Playback], list[Playback]]:
    """Streams that have the service to themselves, and as many of ``TOGETHER`` at a time."""
    everyday = [s for s in sentences(voices, _ROUNDS * TOGETHER) if s.domain == "everyday"]
    requests = [Request(model, s.voice, s.text, cfg_scale, s.index) for s in everyday]
    await client.streams(requests[:1])  # what is done only once is not measured
    one, many = [], []
    for request in tqdm(requests, desc="single streams", disable=None):
        one += await client.streams([request])
    rounds = [requests[i : i + TOGETHER] for i in range(0, len(requests), TOGETHER)]
    for together in tqdm(rounds, desc="concurrent streams", disable=None):
        many += await client.streams(together)
    return one, many


def write(path: Path, one: Sequence[Playback], many: Sequence[Playback]) -> None:
    """Keeps what was measured."""
    streams = {"one": [asdict(s) for s in one], "many": [asdict(s) for s in many]}
    path.write_text(json.dumps(streams))


def read(path: Path) -> tuple[list[Playback], list[Playback]]:
    """What was measured before."""
    streams = json.loads(path.read_text())
    one, many = (
        [Playback(tuple(s["arrivals"]), tuple(s["pieces"])) for s in streams[name]]
        for name in ("one", "many")
    )
    return one, many
