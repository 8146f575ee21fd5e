"""Audio is cut at its silences; nothing that is heard is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.transcription.silences import Samples, Span, spoken_parts

RATE = 16000


def tone(seconds: float, level: float = 0.3) -> Samples:
    times = np.arange(int(seconds * RATE)) / RATE
    return (level * np.sin(2 * np.pi * 220 * times)).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE), np.float32)


def noise(seconds: float, level: float, seed: int = 0) -> Samples:
    rng = np.random.default_rng(seed)
    return (level * rng.standard_normal(int(seconds * RATE))).astype(np.float32)


def seconds(spans: list[Span]) -> list[tuple[float, float]]:
    return [(round(s.first / RATE, 2), round(s.end / RATE, 2)) for s in spans]


@pytest.mark.parametrize("clip", [silence(3), noise(3, 1e-4), np.zeros(1, np.float32)])
def test_silence_has_no_part(clip: Samples) -> None:
    assert spoken_parts(clip, RATE, 30) == []


def test_a_pause_divides() -> None:
    clip = np.concatenate([silence(1), tone(2), silence(1), tone(1), silence(2)])
    assert seconds(spoken_parts(clip, RATE, 30)) == [(0.8, 3.2), (3.8, 5.2)]


def test_a_short_pause_does_not() -> None:
    clip = np.concatenate([tone(1), silence(0.4), tone(1)])
    assert seconds(spoken_parts(clip, RATE, 30)) == [(0.0, 2.4)]


def test_a_quiet_recording_and_one_with_noise_are_heard() -> None:
    clip = np.concatenate([tone(1, 0.01), silence(1), tone(1, 0.01)])
    assert len(spoken_parts(clip, RATE, 30)) == 2
    noisy = np.concatenate([tone(1), silence(1), tone(1)]) + noise(3, 0.003)
    assert seconds(spoken_parts(noisy, RATE, 30)) == [(0.0, 1.2), (1.8, 3.0)]


def test_what_is_too_long_is_cut_where_it_is_quietest() -> None:
    clip = np.concatenate([tone(6), silence(0.2), tone(6)])
    assert len(spoken_parts(clip, RATE, 10)) == 2
    [first, second] = spoken_parts(clip, RATE, 10)
    assert 6.0 <= first.end / RATE <= 6.2
    assert first.end == second.first


@given(
    st.lists(st.tuples(st.floats(0.02, 4), st.floats(0, 2), st.floats(0.05, 0.9)), max_size=6),
    st.floats(1, 5),
)
def test_every_part_fits_and_all_that_is_heard_is_in_one(
    said: list[tuple[float, float, float]], most: float
) -> None:
    pieces = [np.concatenate([tone(s, level), silence(p)]) for s, p, level in said]
    clip = np.concatenate([*pieces, silence(0.1)])
    spans = spoken_parts(clip, RATE, most)
    ends = 0
    for span in spans:
        assert ends <= span.first < span.end <= len(clip)
        assert span.end - span.first <= most * RATE
        ends = span.end
    left = clip.copy()
    for span in spans:
        left[span.first : span.end] = 0
    if spans:
        # Tones that are much quieter than the loudest count as background.
        assert np.abs(left).max(initial=0) <= 0.1 * np.abs(clip).max(initial=0)


@pytest.mark.parametrize("length", [31, 61, 299])
def test_cuts_leave_no_tiny_rest(length: int) -> None:
    spans = spoken_parts(noise(length, 0.1), RATE, 30)
    assert sum(s.end - s.first for s in spans) == length * RATE
    assert min(s.end - s.first for s in spans) >= 5 * RATE
