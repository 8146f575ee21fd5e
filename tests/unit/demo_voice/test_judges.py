"""What the judges are given, and what they make of it."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from demo_voice.judges import JUDGE_RATE, Quality, Recogniser, at_judge_rate, estimate_quality
from demo_voice.teacher import speak
from demo_voice.wer import word_errors

_TEXT = "The children are playing in the park."


@pytest.fixture(scope="module")
def recogniser() -> Recogniser:
    return Recogniser()


@pytest.fixture(scope="module")
def speech() -> NDArray[np.int16]:
    try:
        return speak(_TEXT, "rms")
    except FileNotFoundError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("flite is not installed")


def test_plain_speech_is_understood(recogniser: Recogniser, speech: NDArray[np.int16]) -> None:
    assert word_errors(_TEXT, recogniser.transcribe(speech, JUDGE_RATE)).total <= 1


def test_another_rate_is_understood_as_well(
    recogniser: Recogniser, speech: NDArray[np.int16]
) -> None:
    import soxr

    faster = soxr.resample(speech.astype(np.float32), 16_000, 24_000).astype(np.int16)
    assert word_errors(_TEXT, recogniser.transcribe(faster, 24_000)).total <= 1


def test_a_transcript_depends_on_nothing_heard_before(speech: NDArray[np.int16]) -> None:
    recogniser = Recogniser()
    first = recogniser.transcribe(speech, JUDGE_RATE)
    noise = np.random.default_rng(1).normal(0, 3000, 2 * JUDGE_RATE).astype(np.int16)
    recogniser.transcribe(noise, JUDGE_RATE)
    assert recogniser.transcribe(speech, JUDGE_RATE) == first


@pytest.mark.parametrize("seconds", [0, 1])
def test_silence_has_no_words(recogniser: Recogniser, seconds: int) -> None:
    assert recogniser.transcribe(np.zeros(seconds * JUDGE_RATE, np.int16), JUDGE_RATE) == ""


def test_resampling_keeps_pitch_and_loudness() -> None:
    time = np.arange(24_000) / 24_000
    tone = np.round(20_000 * np.sin(2 * np.pi * 1000 * time)).astype(np.int16)
    heard = at_judge_rate(tone, 24_000)
    assert (heard.dtype, len(heard)) == (np.int16, JUDGE_RATE)
    spectrum = np.abs(np.fft.rfft(heard)) * 2 / len(heard)
    assert spectrum.argmax() == 1000  # Hz, of one second
    assert spectrum.max() == pytest.approx(20_000, rel=0.01)


def test_resampling_does_not_wrap_around() -> None:
    square = np.repeat(np.array([32767, -32768] * 100, np.int16), 60)  # 200 Hz at 24 kHz
    heard = at_judge_rate(square, 24_000)
    assert np.abs(heard[500:-500].astype(int)).min() > 20_000 or heard.max() == 32767
    middle = heard[10:30]  # within the first half period of 40 samples
    assert middle.min() > 20_000


@pytest.mark.parametrize("count", [0, 8000])
def test_quality_is_asked_of_audio_between_minus_one_and_one(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    asked = []

    def run(sample: NDArray[np.float32], sr: int) -> dict[str, Any]:
        asked.append((sample, sr))
        return {"ovrl_mos": np.float32(1), "sig_mos": 2, "bak_mos": 3, "p808_mos": 4}

    monkeypatch.setitem(sys.modules, "speechmos", SimpleNamespace(dnsmos=SimpleNamespace(run=run)))
    quality = estimate_quality(np.full(count, -32768, np.int16), 8000)
    assert quality == Quality(overall=1, signal=2, background=3, p808=4)
    [(sample, rate)] = asked
    assert rate == JUDGE_RATE
    assert len(sample) == JUDGE_RATE  # never none, which would be repeated for ever
    assert np.abs(sample).max() <= 1
