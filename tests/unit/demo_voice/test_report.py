"""The figures of an evaluation, its targets, and the report."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_voice import realtime
from demo_voice.evaluation import fingerprint_of
from demo_voice.figures import Playback, speech_seconds, wer_difference
from demo_voice.judges import Quality
from demo_voice.report import table, to_markdown
from demo_voice.results import Evaluation, Result, dry_share
from demo_voice.sources import Sentence
from demo_voice.targets import TARGETS, Target
from demo_voice.wer import Errors
from deployments.commands import CommandError

_DOMAINS = ("everyday", "numbers", "words")


def _results(
    errors: int = 0, seconds: float = 2.0, finish: str | None = None, p808: float = 3.0
) -> list[Result]:
    """Twelve sentences of ten words, both voices in every domain."""
    return [
        Result(
            sentence=Sentence(domain, index, "Ten words.", ("rms", "slt")[index % 2]),
            transcript="",
            errors=Errors(substitutions=errors, words=10),
            quality=Quality(3, 3, 3, p808),
            speech_seconds=seconds,
            finish=finish,
        )
        for domain in _DOMAINS
        for index in range(4)
    ]


def _evaluation(
    served: Sequence[Result] | None = None,
    one: Sequence[Playback] = (Playback((0.5, 1.0), (1.0, 1.0)),),
    many: Sequence[Playback] = (Playback((0.5, 1.0), (1.0, 1.0)),),
) -> Evaluation:
    served = _results(finish="stop") if served is None else served
    return Evaluation(
        model="demo-voice",
        fingerprint="0123abcd",
        scale=1.5,
        judges={"pocketsphinx": "5.1.1", "settings": {}},
        cores=2,
        command="python -m demo_voice evaluate",
        teacher=_results(),
        round_trip=_results(),
        served={1.5: served, 1.0: _results(errors=5, finish="length")},
        one=one,
        many=many,
        together=8,
    )


def _missed(evaluation: Evaluation) -> list[str]:
    return [target.name for target in TARGETS if not target.met(evaluation)]


def test_a_voice_as_good_as_its_teacher_meets_every_target() -> None:
    assert _missed(_evaluation()) == []


@pytest.mark.parametrize(
    ("served", "names"),
    [
        (_results(errors=2, finish="stop"), ["word error rate"]),
        (_results(finish="length"), ["ended by itself"]),
        (_results(seconds=3.0, finish="stop"), ["as long as the teacher"]),
        (_results(seconds=1.0, finish="stop"), ["as long as the teacher"]),
        (_results(p808=2.0, finish="stop"), ["MOS"]),
    ],
)
def test_every_fault_of_the_speech_misses_its_target(
    served: list[Result], names: list[str]
) -> None:
    missed = _missed(_evaluation(served))
    assert missed
    assert all(any(name in target for name in names) for target in missed)


def test_late_streams_miss_their_targets() -> None:
    late = [Playback((0.5, 4.0), (1.0, 1.0))]
    assert _missed(_evaluation(one=late)) == ["real-time factor, slowest of single streams"]
    assert _missed(_evaluation(many=late)) == [
        "real-time factor, slowest of concurrent streams",
        "concurrent streams that ran dry",
    ]


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (Target("", lambda e: 0.1, at_most=0.1), "at most 10.0%", True),
        (Target("", lambda e: 0.11, at_most=0.1), "at most 10.0%", False),
        (Target("", lambda e: 0.1, at_least=0.1), "at least 10.0%", True),
        (Target("", lambda e: 0.09, ".2f", at_least=0.1), "at least 0.10", False),
        (Target("", lambda e: 0.5, at_most=0.0), "at most 0.0%", False),
    ],
)
def test_a_bound_belongs_to_the_target(target: Target, value: str, met: bool) -> None:
    assert target.bound == value
    assert target.met(_evaluation()) is met


def test_the_report_says_everything() -> None:
    report = to_markdown(_evaluation(_results(errors=1, finish="stop")))
    assert "`0123abcd`" in report
    assert "`python -m demo_voice evaluate`" in report
    assert "| all | 12 | 120 | 0.0% | 0.0% | 10.0% | +10.0 (+10.0 to +10.0) |" in report
    assert "| slt | 6 | 60 |" in report
    assert "| numbers | 4 | 40 |" in report
    assert "| 1 (off) | 50.0% | 50.0% | 50.0% | 50.0% | 0.0% | 100.0% |" in report
    assert "served less teacher, everyday | at most 10.0% | 10.0% | met |" in report
    assert "| 8 | 1 | 0.50 | 0.50 | 0.50 s | 0.50 s | 0.50 s | 100.0% |" in report


def test_the_report_has_no_date_and_no_path() -> None:
    report = to_markdown(_evaluation())
    assert not re.search(r"20\d\d-\d\d|/work|/tmp|/home", report)


def test_the_raw_results_are_plain_json() -> None:
    content = json.loads(json.dumps(_evaluation().to_json()))
    assert content["served"]["1.5"][0]["sentence"]["domain"] == "everyday"
    assert content["teacher"][0]["errors"]["words"] == 10


def test_tables_are_markdown() -> None:
    assert table(["", "x"], [["a", "1"]]) == "|  | x |\n| --- | ---: |\n| a | 1 |"


def test_headroom_is_least_before_the_latest_piece() -> None:
    # At 1.0 s, 0.5 s of 1 s were played; at 2.4 s, 1.9 s of 2 s; the last piece is early.
    playback = Playback((0.5, 1.0, 2.4, 2.5), (1.0, 1.0, 1.0, 1.0))
    assert playback.headroom == pytest.approx(0.1)
    assert playback.audio_seconds == 4.0
    assert playback.real_time_factor == pytest.approx(2.5 / 4)
    assert playback.first_audio == 0.5
    assert dry_share([playback]) == 0


def test_playback_that_waits_ran_dry() -> None:
    dry = Playback((0.5, 1.6, 1.7), (1.0, 1.0, 1.0))
    assert dry.headroom == pytest.approx(-0.1)
    assert dry_share([dry, Playback((3.0,), (1.0,))]) == 0.5


def test_a_late_start_alone_is_no_underrun() -> None:
    assert Playback((9.0, 9.5), (1.0, 1.0)).headroom == 0.5
    assert Playback((9.0,), (1.0,)).headroom == 1.0


@given(st.lists(st.floats(0.01, 2), min_size=1, max_size=8), st.floats(0, 5))
def test_audio_that_comes_all_at_once_never_runs_dry(pieces: list[float], wait: float) -> None:
    playback = Playback((wait,) * len(pieces), tuple(pieces))
    assert playback.headroom == pytest.approx(pieces[0] if len(pieces) > 1 else sum(pieces))


def test_measured_streams_are_read_as_they_were_written(tmp_path: Path) -> None:
    one, many = [Playback((0.5, 1.25), (1.0, 0.5))], [Playback((2.0,), (1.0,))]
    realtime.write(tmp_path / "speed.json", one, many)
    assert realtime.read(tmp_path / "speed.json") == (one, many)


def test_bootstrap_compares_the_same_sentences() -> None:
    # Hard for both: apart they vary widely, the difference does not.
    ours = [Errors(substitutions=hard + 1, words=10) for hard in (0, 3, 6, 9) * 10]
    theirs = [Errors(substitutions=hard, words=10) for hard in (0, 3, 6, 9) * 10]
    found = wer_difference(ours, theirs)
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_bootstrap_is_wider_with_fewer_sentences() -> None:
    def width(count: int) -> float:
        ours = [Errors(substitutions=index % 2, words=10) for index in range(count)]
        found = wer_difference(ours, [Errors(words=10)] * count)
        assert found.low <= found.value <= found.high
        assert found.value == pytest.approx(0.05)
        return found.high - found.low

    # The standard error of a share of one half is 0.5 / sqrt(count); a word is a tenth.
    assert width(100) == pytest.approx(2 * 1.96 * 0.05 / 10, rel=0.15)
    assert width(16) > 2 * width(100)


def test_silence_before_and_after_is_not_speech() -> None:
    noise = np.random.default_rng(1).normal(0, 8, 3 * 16_000)
    noise[8_000:24_000] += np.random.default_rng(2).normal(0, 3000, 16_000)
    noise[14_000:16_000] *= 0  # a pause within counts
    assert speech_seconds(noise.astype(np.int16), 16_000) == pytest.approx(1.0, abs=0.011)


def test_speech_does_not_depend_on_rate_or_loudness() -> None:
    time = np.arange(24_000) / 24_000
    tone = np.where((time > 0.25) & (time < 0.75), np.sin(2 * np.pi * 200 * time), 0)
    for peak in (100, 30_000):
        assert speech_seconds((peak * tone).astype(np.int16), 24_000) == pytest.approx(
            0.5, abs=0.02
        )


def test_nothing_has_no_duration() -> None:
    assert speech_seconds(np.zeros(0, np.int16), 16_000) == 0
    assert speech_seconds(np.zeros(1000, np.int16), 16_000) == 0


def test_a_fingerprint_changes_with_weights_and_settings_only(tmp_path: Path) -> None:
    def write(name: str, content: str) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        return fingerprint_of(tmp_path)

    first = write("model.safetensors", "1")
    assert write("README.md", "About it.") == first
    second = write("codec/config.json", "{}")
    third = write("model.safetensors", "2")
    assert len({first, second, third}) == 3
    assert write("model.safetensors", "1") == second


def test_a_directory_without_weights_has_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CommandError, match="no weights"):
        fingerprint_of(tmp_path)
