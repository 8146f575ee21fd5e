"""Audio formats: sizes, lengths, and pieces that join without a seam."""

import io
import itertools
import struct
import wave
from collections.abc import Sequence

import numpy as np
import pytest
import soxr

from deployments.audio import wav
from deployments.audio.formats import AudioFormat, encoder


def noise(samples: int) -> bytes:
    values = np.random.default_rng(7).normal(scale=12_000, size=samples)
    return values.clip(-(2**15), 2**15 - 1).astype("<i2").tobytes()


def encode(
    pcm: bytes, rate: int, audio_format: AudioFormat, cuts: Sequence[int], *, streamed: bool
) -> bytes:
    """Feeds ``pcm`` cut at the given samples."""
    encode = encoder(audio_format, rate, streamed=streamed)
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
