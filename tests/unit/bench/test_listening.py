"""What is computed from what listeners heard."""

from __future__ import annotations

import pytest

from bench.listening import Heard, budget, continuous, metrics, percentile, table
from demo_voice.client import server_timing
from demo_voice.figures import Playback

SPENT = {"accept": 0.01, "prefill": 0.02, "frames": 0.2, "vocoder": 0.05}


def heard(first: float, late: float) -> Playback:
    """A second of audio, then another one that comes ``late`` seconds after the first is over."""
    return Playback((first, first + 1 + late), (1.0, 1.0), SPENT)


def test_a_stream_is_continuous_if_it_never_stands_still_for_long() -> None:
    streams = [heard(0.3, late) for late in (-0.2, 0.02, 0.07, 0.2)]
    assert [stream.underrun for stream in streams] == pytest.approx([0, 0.02, 0.07, 0.2])
    assert continuous(streams, 0.05) == 0.5
    assert continuous(streams, 0.1) == 0.75


def test_the_steps_and_the_rest_are_the_time_to_first_audio() -> None:
    spent = budget([heard(0.3, 0.0)])
    assert list(spent) == ["accept", "prefill", "frames", "vocoder", "rest"]
    assert spent["rest"] == pytest.approx(0.02)
    assert sum(spent.values()) == pytest.approx(0.3)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.95, 10), (1.0, 10)])
def test_percentiles_are_values_that_were_measured(share: float, value: int) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == value


def test_the_header_of_the_service() -> None:
    header = "accept;dur=10.0, prefill;dur=20.0, frames;dur=200.0, vocoder;dur=50.0"
    assert server_timing(header) == SPENT


def test_the_table() -> None:
    lines = table([Heard(4, 1.5, (heard(0.3, 0.07), heard(0.3, 0.0)))]).splitlines()
    assert lines[0].startswith(
        "| streams | guidance | accept | prefill | frames | vocoder | rest |"
    )
    assert lines[2] == (
        "| 4 | 1.5 | 10 | 20 | 200 | 50 | 20 | 300 | 300 | 0.65 | 0.69 | 70 | 50% | 100% |"
    )


def test_the_metrics_have_the_names_and_buckets_of_the_service() -> None:
    streams = tuple(heard(0.3, late) for late in (-0.2, 0.02, 0.07, 0.2))
    text = metrics([Heard(4, 1.5, streams)], "demo").splitlines()
    series = dict(line.rsplit(" ", 1) for line in text if not line.startswith("#"))
    rest = 'model="demo",task="speech"}'
    assert series['speechlm_audio_seconds_total{guided="true",' + rest] == "8.0"
    for bound in (0.05, 0.1):
        below = series[f'speechlm_underrun_seconds_bucket{{guided="true",le="{bound}",' + rest]
        assert float(below) / len(streams) == continuous(streams, bound)
