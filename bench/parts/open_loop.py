"""Listeners who come when they come, more and more of them, until it is too much."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence

from bench.document import About
from bench.findings import Chart, Findings, Row, Table, Verdict
from bench.loads import Load, arrivals, in_two, saturated
from bench.setting import Setting
from bench.speaking import Answer, Speaker, speaker
from bench.texts import unique_texts

RATES = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
"""Requests per second."""

ABOUT = About(
    "Over HTTP, open loop",
    """
Requests come as a Poisson process, whatever the service does: *rate* is their mean number per
second, *offered* what came. The rates rise until the service is saturated: it refuses or fails
requests, or ends the last one after more than 1.5 times the time in which requests came. The
columns are those of the closed loop; *audio s/s* is of the time in which requests came.
""",
)


def measure(setting: Setting) -> Findings:
    """Every rate up to the first that is too much, as often as the profile has rounds."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Findings:
    rows: list[Row] = []
    faults: list[str] = []
    seconds = setting.choose(8.0, 45.0)
    texts = unique_texts(seed=2)
    async with speaker(setting.url) as client:
        rate_of_frames = await client.frames_per_second(next(texts))
        for round_ in range(setting.choose(1, 3)):
            for rate in RATES:
                load = await _load(client, texts, rate, seconds, round_, rate_of_frames)
                full = saturated(load, seconds)
                key: Row = {"round": round_ + 1, "rate": rate}
                key |= {"offered": len(load.answers) / seconds}
                rows.append(key | {"saturated": "yes" if full else "no"} | load.row())
                faults += load.faults
                if full:
                    break
    return findings(rows, faults)


async def _load(
    client: Speaker,
    texts: Iterator[str],
    rate: float,
    seconds: float,
    round_: int,
    rate_of_frames: float,
) -> Load:
    began = time.perf_counter()

    async def listen(at: float, text: str) -> Answer:
        await asyncio.sleep(began + at - time.perf_counter())
        return await client.speak(text, None, began)

    times = arrivals(rate, seconds, random.Random(f"{rate} {round_}"))
    answers = await asyncio.gather(*(listen(at, next(texts)) for at in times))
    return Load(answers, seconds, rate_of_frames)


def findings(rows: list[Row], faults: Sequence[str] = ()) -> Findings:
    """The tables of all loads."""
    parts = [in_two(row, ("round", "rate", "offered")) for row in rows]
    wrong = sum(int(row["failed"] or 0) for row in rows)
    return Findings(
        [
            Table(
                "Throughput, open loop",
                [throughput for throughput, _ in parts],
                charts=[Chart("Audio seconds per second", "rate", "audio s/s", ("round",), True)],
            ),
            Table(
                "Latency, open loop",
                [latency for _, latency in parts],
                charts=[
                    Chart("Time to first audio, p95 (ms)", "rate", "TTFA p95", ("round",), True)
                ],
            ),
        ],
        [Verdict("failed requests (refused ones aside)", float(wrong), at_most=0.0)],
        {"loads": rows, "faults": list(faults)},
    )
