"""A fixed number of listeners, each of whom asks again when an answer has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import islice

from bench.document import About
from bench.findings import Chart, Findings, Row, Table, Verdict
from bench.hearing import INTELLIGIBLE, heard_errors
from bench.loads import Load, in_two
from bench.setting import Setting
from bench.speaking import Answer, Speaker, speaker
from bench.texts import unique_texts

BUDGET = 1.3
"""What the time to first audio may be, over what the service says it spent on it."""
STREAMS = (1, 2, 4, 8, 16, 32, 64)

ABOUT = About(
    "Over HTTP, closed loop",
    """
So many streams at a time, each of which begins when the service has answered another one. `pcm`
over the loopback, everyday sentences of 25 to 70 characters, no two alike, both voices in turn,
the model's own guidance unless a column says otherwise, after a warm-up that does not count.
Service, harness and judge share the machine.

- *audio s/s, frames/s*: what arrived, from the start until the last request was sent, while all
  streams were busy.
- *TTFT*: until the engine has the first row, as the service states it. *TTFA*: until the first byte
  of audio. *TPOT*: from the first row to the last byte, per further frame. *RTF*: until the last
  byte, per second of audio. All in ms but RTF. *TTFA / budget*: over what the service says it
  spent on the steps to the first audio (latency.md); the rest is HTTP and encoding. Median.
- *underrun*: the longest standstill (ms) of a player that begins with the first byte; *C50*,
  *C100*, *C200*: the share of streams in which it is below 50, 100, 200 ms.
- *failed*: errors, broken answers, and audio that is silent or cannot be as long as its text;
  *refused*: the service said 429. A recogniser writes down a sample of what was heard.
""",
)


def measure(setting: Setting) -> Findings:
    """Every number of streams, as often as the profile has rounds."""
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> Findings:
    rows: list[Row] = []
    heard: list[Answer] = []
    faults: list[str] = []
    texts = unique_texts(seed=1)
    scales: tuple[float | None, ...] = setting.choose((None,), (None, 1.0))
    async with speaker(setting.url) as client:
        rate = await client.frames_per_second(next(texts))
        for scale in scales:
            await _load(client, texts, 1, 2, scale, rate)
            for round_ in range(setting.choose(1, 3)):
                for streams in STREAMS:
                    requests = setting.choose(max(6, 2 * streams), max(12, 3 * streams))
                    load = await _load(client, texts, streams, requests, scale, rate)
                    guidance = "the model's" if scale is None else f"{scale:g}"
                    key: Row = {"guidance": guidance, "streams": streams, "round": round_ + 1}
                    rows.append(key | load.row())
                    heard += load.heard
                    faults += load.faults
    errors = heard_errors(heard, setting.choose(12, 60))
    return findings(rows, errors.rate, errors.words, faults)


async def _load(
    client: Speaker,
    texts: Iterator[str],
    streams: int,
    requests: int,
    scale: float | None,
    rate: float,
) -> Load:
    left = iter(list(islice(texts, requests)))
    answers: list[Answer] = []
    began = time.perf_counter()
    sent = began

    async def listen() -> None:
        nonlocal sent
        for text in left:
            sent = time.perf_counter()
            answers.append(await client.speak(text, scale, began))

    await asyncio.gather(*(listen() for _ in range(streams)))
    ended = time.perf_counter()
    # A single stream is busy to the end; of several, some have nothing to do after the last start.
    seconds = (ended if streams == 1 else sent) - began
    return Load(answers, seconds, rate)


def findings(
    rows: list[Row], error_rate: float, words: int, faults: Sequence[str] = ()
) -> Findings:
    """The tables and verdicts of all loads."""
    parts = [in_two(row, ("guidance", "streams", "round")) for row in rows]
    own = [row for row in rows if row["guidance"] == "the model's"]
    one = [row for row in own if row["streams"] == 1]
    eight = [row for row in own if row["streams"] == 8]
    judged: Row = {"words judged": words, "word error rate %": 100 * error_rate}
    by = ("guidance", "round")
    return Findings(
        [
            Table(
                "Throughput, closed loop",
                [throughput for throughput, _ in parts],
                charts=[Chart("Audio seconds per second", "streams", "audio s/s", by, True)],
            ),
            Table(
                "Latency, closed loop",
                [latency for _, latency in parts],
                charts=[
                    Chart("Time to first audio, median (ms)", "streams", "TTFA p50", by, True),
                    Chart("Real-time factor, p95", "streams", "RTF p95", by, True, 1.0),
                ],
            ),
            Table("What a recogniser heard", [judged]),
        ],
        [
            Verdict("TTFA over its budget, one stream", _worst(one, "TTFA / budget"), BUDGET),
            Verdict("RTF p50 of one stream", _worst(one, "RTF p50"), at_most=0.5),
            Verdict("RTF p95 of 8 streams", _worst(eight, "RTF p95"), at_most=1.0),
            Verdict("C100 of 8 streams, %", _least(eight, "C100 %"), at_least=100.0),
            Verdict("failed requests", float(sum(int(row["failed"] or 0) for row in rows)), 0.0),
            Verdict("word error rate of what was heard", error_rate, at_most=INTELLIGIBLE),
        ],
        {"loads": rows, "faults": list(faults)},
    )


def _worst(rows: list[Row], column: str) -> float:
    """The largest value; infinite if one is missing."""
    values = [row[column] for row in rows]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return max(numbers) if numbers and len(numbers) == len(values) else float("inf")


def _least(rows: list[Row], column: str) -> float:
    """The smallest value; 0 if one is missing."""
    values = [row[column] for row in rows]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return min(numbers) if numbers and len(numbers) == len(values) else 0.0
