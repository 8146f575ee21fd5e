"""Speed: exact lengths, the same pitch, and nothing that depends on how a stream is cut."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deployments.audio.speed import Stretcher

SPEEDS = [0.25, 0.3, 0.5, 0.75, 0.99, 1.01, 1.5, 2.0, 3.3, 4.0]


def tone(seconds: float, rate: int, hertz: float = 200.0) -> NDArray[np.int16]:
    time = np.arange(round(seconds * rate)) / rate
    harmonics = [np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, 6)]
    return (4_000 * np.sum(harmonics, axis=0)).astype("<i2")


def stretch(
    samples: NDArray[np.int16], rate: int, speed: float, cuts: Sequence[int] = ()
) -> NDArray[np.int16]:
    stretcher = Stretcher(rate, speed)
    bounds = [0, *cuts, len(samples)]
    pieces = [stretcher.piece(samples[a:b].tobytes()) for a, b in itertools.pairwise(bounds)]
    return np.frombuffer(b"".join(pieces) + stretcher.finish(), "<i2")


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("rate", [16_000, 44_100])
@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.03, 0.7])
def test_the_length_is_exact(speed: float, rate: int, seconds: float) -> None:
    samples = tone(seconds, rate)
    assert len(stretch(samples, rate, speed)) == round(len(samples) / speed)


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_pitch_stays(speed: float) -> None:
    rate = 24_000
    stretched = stretch(tone(4, rate), rate, speed)
    middle = stretched[len(stretched) // 10 : -len(stretched) // 10]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    frequencies = np.fft.rfftfreq(len(middle), 1 / rate)
    assert frequencies[spectrum.argmax()] == pytest.approx(200, rel=0.01)
    near_a_harmonic = np.abs(frequencies - 200 * np.rint(frequencies / 200)) < 20
    assert spectrum[near_a_harmonic].sum() > 0.98 * spectrum.sum()


@pytest.mark.parametrize("speed", SPEEDS)
def test_events_come_when_they_should(speed: float) -> None:
    rate = 16_000
    samples = np.concatenate([np.zeros(rate, "<i2"), tone(1, rate), np.zeros(rate, "<i2")])
    loud = np.flatnonzero(np.abs(stretch(samples, rate, speed)) > 1_000) / rate
    window = 0.06 * max(1.0, 1 / speed)
    assert loud[0] == pytest.approx(1 / speed, abs=window)
    assert loud[-1] == pytest.approx(2 / speed, abs=window)


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_end_is_not_lost(speed: float) -> None:
    rate = 16_000
    samples = tone(1, rate)
    # The last 0.1 s of speech are high: they must come out, at their length.
    samples[-rate // 10 :] = tone(0.1, rate, 1_000)
    stretched = stretch(samples, rate, speed).astype(np.float64)
    last = stretched[-round(0.15 * rate / speed) :]
    spectrum = np.abs(np.fft.rfft(last * np.hanning(len(last))))
    assert np.fft.rfftfreq(len(last), 1 / rate)[spectrum.argmax()] == pytest.approx(1_000, rel=0.05)


@settings(deadline=None, max_examples=40)
@given(
    speed=st.sampled_from(SPEEDS),
    samples=st.integers(0, 12_000),
    cuts=st.lists(st.integers(0, 12_000), max_size=12),
)
def test_the_cuts_do_not_matter(speed: float, samples: int, cuts: list[int]) -> None:
    rate = 16_000
    pcm = tone(samples / rate, rate)
    cuts = sorted(min(cut, samples) for cut in cuts)
    np.testing.assert_array_equal(stretch(pcm, rate, speed, cuts), stretch(pcm, rate, speed))


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
def test_at_most_200_ms_of_speech_are_held_back(speed: float, rate: int) -> None:
    stretcher = Stretcher(rate, speed)
    pcm = tone(2, rate).tobytes()
    piece = rate // 100 * 2
    fed = given_back = 0
    while fed < len(pcm):
        given_back += len(stretcher.piece(pcm[fed : fed + piece]))
        fed += piece
        assert 0 <= fed - given_back * speed <= 0.2 * rate * 2


def test_at_speed_1_nothing_is_touched() -> None:
    stretcher = Stretcher(16_000, 1.0)
    pcm = tone(0.1, 16_000).tobytes()
    assert stretcher.piece(pcm) == pcm
    assert stretcher.finish() == b""


@pytest.mark.parametrize("speed", [0.0, 0.2499, 4.001, -1.0, float("nan"), float("inf")])
def test_other_speeds_are_refused(speed: float) -> None:
    with pytest.raises(ValueError, match=r"from 0\.25 to 4"):
        Stretcher(16_000, speed)
