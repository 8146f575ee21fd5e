"""MP3, Opus, AAC and FLAC: nothing is lost, streamed or not, and bytes come early."""

import gc
import hashlib
import io
import itertools
import re
import resource
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deployments.audio.formats import AudioFormat, encoder

COMPRESSED: tuple[AudioFormat, ...] = ("mp3", "opus", "aac", "flac")
DOCS = Path(__file__).parents[3] / "docs/audio.md"

# Samples in front of the audio where nothing in the file says so.
MP3_DELAY = 1_105
AAC_DELAY = 1_024
PACKET = {"mp3": 576, "aac": 1_024}  # MPEG-2 rates


def voice(samples: int, rate: int) -> NDArray[np.int16]:
    """Harmonics with a slow swell, loud up to both ends."""
    time = np.arange(samples) / rate
    harmonics = [np.sin(2 * np.pi * 150 * k * time + k) / k for k in range(1, 8)]
    tone = np.sum(harmonics, axis=0)
    return (5_000 * tone * (1 + 0.3 * np.sin(2 * np.pi * 3 * time))).astype("<i2")


def encode(
    pcm: bytes, rate: int, audio_format: AudioFormat, cuts: Sequence[int] = (), *, streamed: bool
) -> bytes:
    made = encoder(audio_format, rate, streamed=streamed)
    bounds = [0, *(2 * cut for cut in cuts), len(pcm)]
    pieces = [made.encode(pcm[a:b]) for a, b in itertools.pairwise(bounds)]
    return b"".join(pieces) + made.finish()


def decoded(content: bytes) -> NDArray[np.float64]:
    """Every sample that a decoder gives, full scale at 1."""
    with av.open(io.BytesIO(content), "r") as container:
        arrays = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
    full_scale = 2**15 if arrays and arrays[0].dtype.kind == "i" else 1
    return np.concatenate([np.zeros(0), *arrays]) / full_scale


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("beyond", [0, 1, 17, 46, 500, 1_000])
@pytest.mark.parametrize("streamed", [False, True])
def test_flac_gives_back_every_sample(rate: int, beyond: int, streamed: bool) -> None:
    pcm = voice(rate + beyond, rate)
    content = encode(pcm.tobytes(), rate, "flac", [100, 101, 5_000], streamed=streamed)
    np.testing.assert_array_equal(decoded(content) * 2**15, pcm)


def test_a_flac_file_states_its_length_and_its_hash() -> None:
    pcm = voice(12_345, 24_000).tobytes()
    stream_info = encode(pcm, 24_000, "flac", streamed=False)[8:42]
    assert int.from_bytes(stream_info[13:18], "big") & (2**36 - 1) == 12_345
    assert stream_info[18:34] == hashlib.md5(pcm).digest()


def test_a_streamed_flac_says_that_its_length_is_unknown() -> None:
    stream_info = encode(voice(9_999, 24_000).tobytes(), 24_000, "flac", streamed=True)[8:42]
    assert int.from_bytes(stream_info[13:18], "big") & (2**36 - 1) == 0


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("beyond", [0, 1, 17, 46, 47, 500, 576, 1_000, 1_152])
def test_an_mp3_file_decodes_to_the_sample(rate: int, beyond: int) -> None:
    # A multiple of both frame lengths, and some more.
    pcm = voice(11_520 + beyond, rate)
    samples = decoded(encode(pcm.tobytes(), rate, "mp3", streamed=False))
    assert len(samples) == len(pcm)
    assert correlation(samples, pcm.astype(np.float64)) > 0.99


@pytest.mark.parametrize("rate", [8_000, 12_000, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("beyond", [0, 1, 647, 961])
@pytest.mark.parametrize("streamed", [False, True])
def test_opus_decodes_to_the_sample_and_keeps_its_end(
    rate: int, beyond: int, streamed: bool
) -> None:
    pcm = voice(rate + beyond, rate)
    samples = decoded(encode(pcm.tobytes(), rate, "opus", [77, 5_000], streamed=streamed))
    assert abs(len(samples) - len(pcm) * 48_000 / rate) <= 1
    last_tenth = samples[-4_800:]
    assert np.abs(last_tenth[-960:]).max() > 0.5 * np.abs(last_tenth).max()


@pytest.mark.parametrize("rate", [16_000, 24_000])
@pytest.mark.parametrize("beyond", [0, 1, 46, 500, 1_023])
def test_aac_and_streamed_mp3_have_only_their_codecs_padding_around_the_audio(
    rate: int, beyond: int
) -> None:
    pcm = voice(rate + beyond, rate)
    delays: dict[AudioFormat, int] = {"mp3": MP3_DELAY, "aac": AAC_DELAY}
    for audio_format, delay in delays.items():
        samples = decoded(encode(pcm.tobytes(), rate, audio_format, streamed=True))
        behind = len(samples) - delay - len(pcm)
        # The codec ends with the packet that holds the last sample, MP3 perhaps with one more.
        assert 0 <= behind < 2 * PACKET[audio_format], audio_format
        within = samples[delay : delay + len(pcm)]
        assert correlation(within, pcm.astype(np.float64)) > 0.99, audio_format


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_streamed_is_the_same_audio_as_a_file(audio_format: AudioFormat) -> None:
    pcm = voice(30_001, 24_000).tobytes()
    whole = decoded(encode(pcm, 24_000, audio_format, streamed=False))
    streamed = decoded(encode(pcm, 24_000, audio_format, range(77, 30_000, 777), streamed=True))
    padding = MP3_DELAY if audio_format == "mp3" else 0  # an MP3 file states its own
    np.testing.assert_array_equal(streamed[padding : padding + len(whole)], whole)


@settings(deadline=None, max_examples=25)
@given(
    audio_format=st.sampled_from(COMPRESSED),
    rate=st.sampled_from([16_000, 22_050, 44_100]),
    streamed=st.booleans(),
    samples=st.integers(0, 9_000),
    cuts=st.lists(st.integers(0, 9_000), max_size=12),
)
def test_the_bytes_do_not_depend_on_the_cuts(
    audio_format: AudioFormat, rate: int, streamed: bool, samples: int, cuts: list[int]
) -> None:
    pcm = voice(samples, rate).tobytes()
    cuts = sorted(min(cut, samples) for cut in cuts)
    whole = encode(pcm, rate, audio_format, streamed=streamed)
    assert encode(pcm, rate, audio_format, cuts, streamed=streamed) == whole


@pytest.mark.parametrize("audio_format", COMPRESSED)
@pytest.mark.parametrize("streamed", [False, True])
def test_without_audio_the_file_is_valid_and_silent(
    audio_format: AudioFormat, streamed: bool
) -> None:
    samples = decoded(encode(b"", 24_000, audio_format, streamed=streamed))
    assert len(samples) <= 2_048  # the codec's padding
    assert not np.abs(samples).max(initial=0.0) > 1e-4


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_a_file_comes_at_the_end(audio_format: AudioFormat) -> None:
    made = encoder(audio_format, 24_000, streamed=False)
    assert made.encode(voice(24_000, 24_000).tobytes()) == b""
    assert made.finish()


@pytest.mark.parametrize(
    ("audio_format", "media_type"),
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/opus"),
        ("aac", "audio/aac"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
    ],
)
def test_content_types(audio_format: AudioFormat, media_type: str) -> None:
    assert encoder(audio_format, 24_000, streamed=True).media_type == media_type


@pytest.mark.parametrize("audio_format", COMPRESSED)
def test_streaming_does_not_keep_what_it_has_sent(audio_format: AudioFormat) -> None:
    made = encoder(audio_format, 24_000, streamed=True)
    second = voice(24_000, 24_000).tobytes()

    def bytes_after(seconds: int) -> NDArray[np.int64]:
        """Python's, and the whole process's."""
        sent = sum(len(made.encode(second)) for _ in range(seconds))
        assert sent
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return np.array([tracemalloc.get_traced_memory()[0], pages * resource.getpagesize()])

    tracemalloc.start()
    try:
        bytes_after(3)
        grown = np.diff([bytes_after(40) for _ in range(4)], axis=0)
    finally:
        tracemalloc.stop()
    # What is kept is kept each time; an allocator takes more now and then.
    python, process = grown.min(axis=0)
    assert python < 50_000  # 40 s are 240 kB and more, in any of the formats
    assert process < 1_000_000  # as PCM they are 1.9 MB
    made.finish()


def first_audio_and_largest_step(audio_format: AudioFormat, rate: int) -> tuple[int, int]:
    """Milliseconds of PCM fed before the first audio leaves, and between two outputs."""
    made = encoder(audio_format, rate, streamed=True)
    pcm = voice(3 * rate, rate).tobytes()
    piece = rate // 100 * 2
    sent = b""
    times = []
    for fed in range(1, len(pcm) // piece + 1):
        more = made.encode(pcm[(fed - 1) * piece : fed * piece])
        sent += more
        if more and len(sent) > header_length(audio_format, sent):
            times.append(10 * fed)
    return times[0], max(b - a for a, b in itertools.pairwise(times))


def header_length(audio_format: AudioFormat, content: bytes) -> int:
    """Bytes in front of the audio; all of them if there is none yet."""
    first_audio = {
        "opus": rb"(?:OggS.*?){2}(?=OggS)",
        "flac": rb".*?(?=\xff\xf8)",
        "wav": rb".{44}",
    }
    match = re.match(first_audio.get(audio_format, rb""), content, re.DOTALL)
    return match.end() if match else len(content)


@pytest.mark.parametrize("audio_format", [*COMPRESSED, "wav", "pcm"])
def test_audio_leaves_as_early_as_documented(audio_format: AudioFormat) -> None:
    (row,) = re.findall(
        rf"^\| `{audio_format}` \| ((?:\d+ \| ){{3}}\d+) \|$", DOCS.read_text(), re.MULTILINE
    )
    stated = [int(cell) for cell in row.split(" | ")]
    measured = [
        value
        for rate in (16_000, 24_000)
        for value in first_audio_and_largest_step(audio_format, rate)
    ]
    assert measured == stated
