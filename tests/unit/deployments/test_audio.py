"""Audio formats without compression, sample rates, and pieces that join without a seam."""

import io
import itertools
import struct
import wave
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.audio import wav
from deployments.audio.formats import AudioFormat, encoder
from deployments.audio.resampling import Resampler

FORMATS: tuple[AudioFormat, ...] = get_args(AudioFormat)
MPEG_RATES = "8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000"


def noise(samples: int) -> bytes:
    values = np.random.default_rng(7).normal(scale=12_000, size=samples)
    return values.clip(-(2**15), 2**15 - 1).astype("<i2").tobytes()


def encode(
    pcm: bytes,
    rate: int,
    audio_format: AudioFormat,
    cuts: Sequence[int],
    *,
    streamed: bool,
    sample_rate: int | None = None,
) -> bytes:
    """Feeds ``pcm`` cut at the given samples."""
    encode = encoder(audio_format, rate, streamed=streamed, sample_rate=sample_rate)
    bounds = [0, *(2 * cut for cut in cuts), len(pcm)]
    pieces = [encode.encode(pcm[a:b]) for a, b in itertools.pairwise(bounds)]
    return b"".join(pieces) + encode.finish()


def test_a_file_has_true_sizes() -> None:
    pcm = noise(1234)
    content = encode(pcm, 16_000, "wav", [100, 900], streamed=False)
    with wave.open(io.BytesIO(content)) as file:
        assert file.getparams()[:4] == (1, 2, 16_000, 1234)
        assert file.readframes(1234) == pcm
    assert struct.unpack_from("<I", content, 4)[0] == len(content) - 8


def test_a_streamed_wav_has_one_header_and_says_that_its_length_is_unknown() -> None:
    pcm = noise(1000)
    content = encode(pcm, 22_050, "wav", [1, 500], streamed=True)
    assert content[wav.HEADER_BYTES :] == pcm
    assert struct.unpack_from("<I", content, 4) == struct.unpack_from("<I", content, 40)
    assert struct.unpack_from("<I", content, 40) == (0xFFFFFFFF,)
    assert struct.unpack_from("<I", content, 24) == (22_050,)


def test_a_streamed_wav_without_audio_is_still_a_wav() -> None:
    assert len(encode(b"", 16_000, "wav", [], streamed=True)) == wav.HEADER_BYTES


def test_a_wav_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        wav.header(16_000, 2**32)


@pytest.mark.parametrize("rate", [16_000, 22_050, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("cuts", [[], [1, 2, 3, 4_000], list(range(320, 9_000, 320))])
def test_pcm_is_24_khz_whole_and_seamless(rate: int, cuts: list[int]) -> None:
    pcm = noise(9_001)
    streamed = encode(pcm, rate, "pcm", cuts, streamed=True)
    samples = np.frombuffer(pcm, "<i2").astype(np.float32)
    whole = np.rint(soxr.resample(samples, rate, 24_000)).clip(-(2**15), 2**15 - 1)
    np.testing.assert_array_equal(np.frombuffer(streamed, "<i2"), whole)
    assert abs(len(streamed) // 2 - 9_001 * 24_000 / rate) < 1


def test_pcm_at_24_khz_is_not_touched() -> None:
    pcm = noise(500)
    assert encode(pcm, 24_000, "pcm", [100], streamed=True) == pcm


@settings(deadline=None)
@given(
    samples=st.integers(0, 4_000),
    cuts=st.lists(st.integers(0, 4_000), max_size=8),
    rates=st.tuples(*[st.sampled_from([8_000, 11_025, 16_000, 24_000, 44_100, 48_000])] * 2),
)
def test_resampling_does_not_depend_on_the_cuts(
    samples: int, cuts: list[int], rates: tuple[int, int]
) -> None:
    pcm = noise(samples)
    whole, cut = Resampler(*rates), Resampler(*rates)
    bounds = [0, *sorted(2 * min(cut, samples) for cut in cuts), len(pcm)]
    pieces = [cut.piece(pcm[a:b]) for a, b in itertools.pairwise(bounds)]
    resampled = b"".join(pieces) + cut.finish()
    assert resampled == whole.piece(pcm) + whole.finish()
    assert abs(len(resampled) / 2 - samples * rates[1] / rates[0]) <= 1


@pytest.mark.parametrize("audio_format", FORMATS)
@pytest.mark.parametrize("codec_rate", [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
def test_the_usual_rate_is_the_codecs_own_except_in_pcm_and_opus(
    audio_format: AudioFormat, codec_rate: int
) -> None:
    other = {"pcm": 24_000, "opus": 48_000}
    made = encoder(audio_format, codec_rate, streamed=True)
    assert made.sample_rate == other.get(audio_format, codec_rate)


@pytest.mark.parametrize(
    ("audio_format", "codec_rate", "rate"),
    [("mp3", 12_345, 16_000), ("aac", 50_000, 48_000), ("flac", 12_345, 12_345)],
)
def test_a_codecs_rate_that_a_format_does_not_have_becomes_the_next_one_above(
    audio_format: AudioFormat, codec_rate: int, rate: int
) -> None:
    assert encoder(audio_format, codec_rate, streamed=True).sample_rate == rate


@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
@pytest.mark.parametrize("rate", [8_000, 12_345, 48_000])
def test_a_rate_that_was_asked_for(audio_format: AudioFormat, rate: int) -> None:
    pcm = noise(1_600)
    whole = encode(pcm, 16_000, audio_format, [], streamed=False, sample_rate=rate)
    header = wav.HEADER_BYTES if audio_format == "wav" else 0
    assert abs(len(whole) - header - 2 * rate / 10) <= 2
    assert encoder(audio_format, 16_000, streamed=True, sample_rate=rate).sample_rate == rate


@pytest.mark.parametrize(
    ("audio_format", "rate", "possible"),
    [
        ("wav", 7_999, "8000 to 48000"),
        ("pcm", 48_001, "8000 to 48000"),
        ("flac", 96_000, "8000 to 48000"),
        ("mp3", 10_000, MPEG_RATES),
        ("aac", 96_000, MPEG_RATES),
        ("opus", 44_100, "8000, 12000, 16000, 24000, 48000"),
    ],
)
def test_a_rate_that_a_format_cannot_have_is_refused_with_those_it_can(
    audio_format: AudioFormat, rate: int, possible: str
) -> None:
    with pytest.raises(ValueError, match=f"{audio_format} cannot have {rate} Hz.*{possible} Hz"):
        encoder(audio_format, 16_000, streamed=True, sample_rate=rate)
