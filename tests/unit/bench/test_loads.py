"""What a load on a service comes to."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest

from bench.findings import Row
from bench.loads import Load, arrivals, in_two, saturated
from bench.parts import closed_loop, open_loop
from bench.speaking import Answer, audio_fault
from bench.texts import LONGEST, SHORTEST, unique_texts
from demo_voice.client import PCM_RATE
from demo_voice.figures import Playback

SPENT = {"accept": 0.01, "prefill": 0.04, "frames": 0.2, "vocoder": 0.05}


def answer(asked: float, first: float = 0.4, late: float = 0.0) -> Answer:
    """Two seconds of audio in two pieces, the second of them so late."""
    return Answer("text", asked, Playback((first, first + 1 + late), (1.0, 1.0), SPENT))


def test_audio_counts_that_arrived_in_the_window() -> None:
    load = Load([answer(0.0), answer(1.0)], seconds=2.0, frames_per_second=50.0)
    assert load.audio_per_second == pytest.approx(3 / 2)  # the last second came at 2.4
    row = load.row()
    assert row["frames/s"] == pytest.approx(75)


def test_latencies_in_milliseconds() -> None:
    row = Load([answer(0.0), answer(0.0, late=0.15)], 2.0, 50.0).row()
    assert row["TTFT p50"] == pytest.approx(50)
    assert row["TTFA p99"] == pytest.approx(400)
    assert row["TPOT p50"] == pytest.approx(1000 * (1.4 - 0.05) / 99)
    assert row["RTF p95"] == pytest.approx(1.55 / 2)
    assert row["TTFA / budget"] == pytest.approx(0.4 / 0.3)
    assert row["underrun max"] == pytest.approx(150)
    assert (row["C50 %"], row["C100 %"], row["C200 %"]) == (50, 50, 100)


def test_failures_and_refusals_are_counted_apart_and_have_no_latency() -> None:
    load = Load(
        [answer(0.0), Answer("x", 0.1, refused=True), Answer("y", 0.2, error="500: no")], 1.0, 50.0
    )
    row = load.row()
    assert (row["requests"], row["refused"], row["failed"]) == (3, 1, 1)
    assert load.faults == ["500: no ('y')"]
    assert closed_loop.findings([], 0.2, 100, load.faults).raw["faults"] == load.faults
    assert row["TTFA p50"] == pytest.approx(400)
    nothing = Load([Answer("x", 0.0, error="no")], 1.0, 50.0).row()
    assert list(nothing) == list(row)
    assert nothing["TTFA p50"] is None
    assert nothing["audio s/s"] == 0


def test_a_poisson_process_has_its_rate() -> None:
    times = list(arrivals(20.0, 200.0, random.Random(1)))
    assert times == sorted(times)
    assert times[-1] < 200
    assert len(times) == pytest.approx(4000, rel=0.05)
    gaps = np.diff(times)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_saturated_by_refusals_failures_or_a_growing_queue() -> None:
    assert not saturated(Load([answer(7.0)], 8.0, 50.0), 8.0)
    assert saturated(Load([answer(7.0, first=5.0)], 8.0, 50.0), 8.0)
    assert saturated(Load([answer(7.0), Answer("x", 0.0, refused=True)], 8.0, 50.0), 8.0)
    assert saturated(Load([Answer("x", 0.0, error="no")], 8.0, 50.0), 8.0)


@pytest.mark.parametrize(
    ("seconds", "level", "fault"),
    [
        (2.0, 0.1, None),
        (0.3, 0.1, "0.30 s of audio for 30 characters"),
        (20.0, 0.1, "20.00 s of audio for 30 characters"),
        (2.0, 0.0, "the audio is silent"),
    ],
)
def test_audio_is_as_long_as_its_text_and_not_silent(
    seconds: float, level: float, fault: str | None
) -> None:
    pcm = np.full(round(seconds * PCM_RATE), round(level * 32767), np.int16)
    assert audio_fault("a text of thirty characters ..", pcm) == fault


def test_no_text_comes_twice() -> None:
    texts = list(islice(unique_texts(3), 2000))
    assert len(set(texts)) == len(texts)
    assert all(SHORTEST <= len(text) <= LONGEST for text in texts)
    assert texts[:9] == list(islice(unique_texts(3), 9))


def test_a_row_is_split_into_throughput_and_latency() -> None:
    row: Row = {"streams": 4}
    row |= Load([answer(0.0)], 2.0, 50.0).row()
    throughput, latency = in_two(row, ["streams"])
    assert list(throughput) == ["streams", "requests", "refused", "failed", "audio s/s", "frames/s"]
    assert list(latency)[:2] == ["streams", "TTFT p50"]
    assert len(throughput) + len(latency) == len(row) + 1


def own(streams: int, round_: int) -> Row:
    return {"guidance": "the model's", "streams": streams, "round": round_}


def test_verdicts_of_the_closed_loop() -> None:
    fast, late = Load([answer(0.0)], 2.0, 50.0), Load([answer(0.0, late=0.3)], 2.0, 50.0)
    rows = [own(1, 1) | late.row(), own(8, 1) | fast.row()]
    verdicts = {v.name: v for v in closed_loop.findings(rows, 0.2, 100).verdicts}
    assert verdicts["RTF p50 of one stream"].value == pytest.approx(0.85)
    assert verdicts["C100 of 8 streams, %"].met
    assert not verdicts["RTF p50 of one stream"].met
    assert not verdicts["TTFA over its budget, one stream"].met
    assert verdicts["failed requests"].met
    nothing = Load([Answer("x", 0.0, error="no")], 1.0, 50.0).row()
    rows.append(own(8, 2) | nothing)
    verdicts = {v.name: v for v in closed_loop.findings(rows, 0.2, 100).verdicts}
    assert not verdicts["C100 of 8 streams, %"].met
    assert not verdicts["RTF p95 of 8 streams"].met
    assert not verdicts["failed requests"].met


def test_refusals_of_the_open_loop_are_no_failures() -> None:
    load = Load([answer(0.0), Answer("x", 0.0, refused=True)], 2.0, 50.0)
    row: Row = {"round": 1, "rate": 4.0, "offered": 1.0, "saturated": "yes"}
    row |= load.row()
    [verdict] = open_loop.findings([row]).verdicts
    assert verdict.met
