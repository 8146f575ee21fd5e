"""Uploads: what is read, what is refused, and what it may cost."""

import io
import resource
import socket
import struct
import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray

from deployments.audio import reading, wav
from deployments.audio.decoding import AudioError, AudioTooLong, decode
from deployments.audio.reading import read_audio

RATE = 16_000
SECONDS = 2.0


def tone(seconds: float, rate: int = RATE) -> NDArray[np.int16]:
    return (8_000 * np.sin(2 * np.pi * 300 * np.arange(round(seconds * rate)) / rate)).astype("<i2")


def file(
    container: str,
    codec: str,
    samples: NDArray[np.int16],
    *,
    rate: int = RATE,
    layout: str = "mono",
    video: bool = False,
    options: dict[str, str] | None = None,
) -> bytes:
    """``samples`` ``[n]`` in every channel."""
    content = io.BytesIO()
    with av.open(content, "w", format=container, options=options) as output:
        stream = output.add_stream(codec, rate=rate)
        assert isinstance(stream, AudioStream)
        stream.codec_context.layout = layout
        if video:
            add_video(output)
        channels = stream.codec_context.channels
        for start in range(0, len(samples), 4_096):
            piece = np.repeat(samples[start : start + 4_096], channels)[None]
            frame = av.AudioFrame.from_ndarray(piece, format="s16", layout=layout)
            frame.sample_rate, frame.pts = rate, start
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return content.getvalue()


def add_video(output: OutputContainer) -> None:
    stream = output.add_stream("mpeg4", rate=10)
    assert isinstance(stream, VideoStream)
    stream.width = stream.height = 64
    stream.pix_fmt = "yuv420p"
    stream.time_base = Fraction(1, 10)
    for number in range(20):
        frame = av.VideoFrame(64, 64, "yuv420p")
        frame.pts = number
        output.mux(stream.encode(frame))
    output.mux(stream.encode(None))


def video_without_audio() -> bytes:
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as output:
        add_video(output)
    return content.getvalue()


def two_seconds(data: bytes) -> NDArray[np.float32]:
    return decode(data, sample_rate=RATE, max_seconds=10)


@pytest.mark.parametrize(
    ("container", "codec", "exact"),
    [
        ("wav", "pcm_s16le", True),
        ("wav", "pcm_s24le", True),
        ("wav", "pcm_s32le", True),
        ("wav", "pcm_f32le", True),
        ("wav", "pcm_f64le", True),
        ("wav", "pcm_u8", False),
        ("wav", "pcm_mulaw", False),
        ("wav", "adpcm_ms", False),
        ("aiff", "pcm_s16be", True),
        ("flac", "flac", True),
        ("ipod", "alac", True),
        ("mp3", "libmp3lame", False),
        ("ogg", "libopus", False),
        ("webm", "libopus", False),
        ("matroska", "aac", False),
        ("mp4", "aac", False),
        ("adts", "aac", False),
    ],
)
def test_common_files_are_read(container: str, codec: str, exact: bool) -> None:
    samples = tone(SECONDS)
    read = two_seconds(file(container, codec, samples))
    assert read.dtype == np.float32
    assert abs(len(read) - len(samples)) < 0.2 * RATE  # the codec's padding
    assert 0.8 < np.abs(read).max() / (8_000 / 2**15) < 1.2
    if exact:
        np.testing.assert_array_equal(read * 2**15, samples)


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_of_a_film_the_sound_is_read(container: str) -> None:
    samples = tone(SECONDS)
    without = two_seconds(file(container, "aac", samples))
    film = two_seconds(file(container, "aac", samples, video=True))
    np.testing.assert_array_equal(film, without)


@pytest.mark.parametrize("layout", ["stereo", "5.1", "7.1"])
def test_channels_are_averaged(layout: str) -> None:
    samples = tone(1)
    read = two_seconds(file("flac", "flac", samples, layout=layout))
    np.testing.assert_array_equal(read * 2**15, samples)


def test_opposite_channels_cancel() -> None:
    header = bytearray(wav.header(RATE, 8))
    header[22:24] = struct.pack("<H", 2)
    header[28:34] = struct.pack("<IH", 4 * RATE, 4)
    read = two_seconds(bytes(header) + struct.pack("<4h", 5_000, -5_000, 300, 100))
    np.testing.assert_array_equal(read * 2**15, [0, 200])


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_other_rates_are_resampled(rate: int) -> None:
    read = two_seconds(wav.file(rate, tone(1, rate).tobytes()))
    assert abs(len(read) - RATE) <= 1
    middle = slice(RATE // 4, -RATE // 4)
    np.testing.assert_allclose(read[middle], tone(1)[middle] / 2**15, atol=2e-4)


@pytest.mark.parametrize("size", [0, 100, 64_001, 2**31, 0xFFFFFFFE, 0xFFFFFFFF])
@pytest.mark.parametrize("riff_size", [0, 0xFFFFFFFF])
def test_a_wav_that_lies_about_its_size(size: int, riff_size: int) -> None:
    samples = tone(SECONDS)
    content = bytearray(wav.file(RATE, samples.tobytes()))
    content[4:8] = struct.pack("<I", riff_size)
    content[40:44] = struct.pack("<I", size)
    read = two_seconds(bytes(content))
    # A size that is too small is believed: other chunks may follow.
    expected = samples[: size // 2] if 0 < size < 64_000 else samples
    np.testing.assert_array_equal(read * 2**15, expected)


@pytest.mark.parametrize("cut", [45, 46, 47, 1_001, 30_000])
def test_a_wav_that_was_cut_is_read_as_far_as_it_goes(cut: int) -> None:
    samples = tone(SECONDS)
    content = wav.file(RATE, samples.tobytes())[:cut]
    if cut == wav.HEADER_BYTES + 1:
        with pytest.raises(AudioError):
            two_seconds(content)
    else:
        read = two_seconds(content)
        np.testing.assert_array_equal(read * 2**15, samples[: (cut - wav.HEADER_BYTES) // 2])


@pytest.mark.parametrize("tail", [b"TAG" + bytes(125), bytes(3_000), b"\xfe\xed" * 999])
def test_what_stands_behind_an_mp3_is_no_damage(tail: bytes) -> None:
    read = two_seconds(file("mp3", "libmp3lame", tone(SECONDS)) + tail)
    assert abs(len(read) - 2 * RATE) < 0.1 * RATE


MP4 = file("mp4", "aac", tone(SECONDS))
FRAGMENTED = {"movflags": "frag_keyframe+empty_moov"}


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is empty"),
        (b"hello " * 500, "known format"),
        (np.random.default_rng(1).bytes(60_000), "damaged"),
        (wav.file(RATE, b""), "no audio"),
        (wav.header(RATE, 100)[:30], "damaged"),
        (video_without_audio(), "no audio"),
        (MP4[: len(MP4) // 2], "damaged"),
        (file("mp4", "aac", tone(2), options=FRAGMENTED)[:9_000], "damaged"),
        (file("flac", "flac", tone(2))[:9_000], "damaged"),
        (file("adts", "aac", tone(2))[:9_001], "damaged"),
        (file("flac", "flac", tone(2))[:42], "no audio|cut off|damaged"),
        (wav.file(3_999, tone(1).tobytes()), "sample rate of 3999 Hz"),
        (wav.file(1_000_000, tone(1).tobytes()), "sample rate of 1000000 Hz"),
        (file("wav", "pcm_s16le", tone(0.1), layout="hexadecagonal"), "16 channels"),
        (file("wav", "adpcm_g726", tone(0.5), rate=8_000), "g726"),
    ],
)
def test_what_cannot_be_used_is_refused_by_what_it_is(data: bytes, what: str) -> None:
    with pytest.raises(AudioError, match=what) as caught:
        two_seconds(data)
    assert not isinstance(caught.value, AudioTooLong)


def test_a_flac_that_ends_at_a_frame_is_still_seen_to_be_cut() -> None:
    content = file("flac", "flac", tone(SECONDS))
    middle = content.index(b"\xff\xf8", len(content) // 2)
    with pytest.raises(AudioError, match=r"cut off after|damaged"):
        two_seconds(content[:middle])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_samples_that_are_no_numbers_are_refused(value: float) -> None:
    content = bytearray(file("wav", "pcm_f32le", tone(1)))
    content[-4:] = struct.pack("<f", value)
    with pytest.raises(AudioError, match="no numbers"):
        two_seconds(bytes(content))


@pytest.mark.parametrize("value", [1.5, -3.0, 1e30, 3e38])
def test_samples_beyond_full_scale_are_cut_to_it(value: float) -> None:
    content = bytearray(file("wav", "pcm_f32le", tone(1)))
    content[-400:] = struct.pack("<f", value) * 100
    assert np.abs(two_seconds(bytes(content))).max() == 1.0


@pytest.mark.parametrize(
    "bomb",
    [
        file("flac", "flac", np.zeros(1_200 * 8_000, "<i2"), rate=8_000),
        20_000 * file("adts", "aac", np.zeros(8_000, "<i2"), rate=8_000),  # more than five hours
    ],
    ids=["flac", "aac"],
)
def test_hours_of_silence_end_at_the_limit(bomb: bytes) -> None:
    began = time.process_time()
    with pytest.raises(AudioTooLong, match="longer than 5 seconds"):
        decode(bomb, sample_rate=RATE, max_seconds=5)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("container", "codec"),
    [
        ("mp4", "aac"),
        ("flac", "flac"),
        ("mp3", "libmp3lame"),
        ("webm", "libopus"),
        ("ogg", "libopus"),
    ],
)
def test_whatever_is_damaged_gives_audio_or_a_refusal(container: str, codec: str) -> None:
    random = np.random.default_rng(11)
    content = np.frombuffer(file(container, codec, tone(0.3)), np.uint8)
    for _ in range(60):
        damaged = content.copy()
        places = random.integers(0, len(damaged), random.integers(1, 20))
        damaged[places] = random.integers(0, 256, len(places))
        try:
            samples = decode(damaged.tobytes(), sample_rate=RATE, max_seconds=5)
        except AudioError:
            continue
        assert np.isfinite(samples).all()
        assert 0 < len(samples) <= 5 * RATE + 1


def test_the_limit_itself_is_allowed() -> None:
    content = wav.file(RATE, tone(2).tobytes())
    assert len(decode(content, sample_rate=RATE, max_seconds=2.0)) == 2 * RATE
    with pytest.raises(AudioTooLong):
        decode(content, sample_rate=RATE, max_seconds=1.99)


SCRIPTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{url}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile '{url}'\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns={url}\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">'
    '<Period><AdaptationSet mimeType="audio/mp4"><Representation id="1" bandwidth="1">'
    "<BaseURL>{url}</BaseURL></Representation></AdaptationSet></Period></MPD>",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_file_that_names_others_opens_none(script: str, tmp_path: Path) -> None:
    target = tmp_path / "secret.wav"
    target.write_bytes(wav.file(RATE, tone(1).tobytes()))
    with pytest.raises(AudioError, match="known format"):
        two_seconds(script.format(url=f"file://{target}").encode())
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/secret.wav"
        with pytest.raises(AudioError, match="known format"):
            two_seconds(script.format(url=url).encode())
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has called
            server.accept()


def test_a_concat_script_would_be_followed_without_the_lists(tmp_path: Path) -> None:
    """The test above would notice: FFmpeg by itself reads the other file."""
    target = tmp_path / "secret.wav"
    target.write_bytes(wav.file(RATE, tone(1).tobytes()))
    script = io.BytesIO(SCRIPTS["concat"].format(url=target).encode())
    options = {"safe": "0", "protocol_whitelist": "file"}
    with av.open(script, "r", format="concat", container_options=options) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) == RATE


def test_reading_in_a_process_is_the_same() -> None:
    content = file("flac", "flac", tone(1), rate=22_050)
    np.testing.assert_array_equal(
        read_audio(content, sample_rate=24_000, max_seconds=5),
        decode(content, sample_rate=24_000, max_seconds=5),
    )


@pytest.mark.parametrize(
    ("data", "kind"), [(b"", AudioError), (wav.file(RATE, tone(3).tobytes()), AudioTooLong)]
)
def test_refusals_come_out_of_the_process(data: bytes, kind: type[AudioError]) -> None:
    with pytest.raises(AudioError) as in_process:
        decode(data, sample_rate=RATE, max_seconds=2)
    with pytest.raises(kind) as caught:
        read_audio(data, sample_rate=RATE, max_seconds=2)
    assert type(caught.value) is kind
    assert str(caught.value) == str(in_process.value)


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("kill -SEGV $$", AudioError, "time and memory"),
        ("kill -XCPU $$", AudioError, "time and memory"),
        ("echo broken >&2; exit 1", RuntimeError, "broken"),
    ],
)
def test_a_process_that_dies_is_the_files_fault_and_one_that_fails_is_not(
    script: str,
    kind: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(kind, match=message):
        read_audio(wav.file(RATE, tone(1).tobytes()), sample_rate=RATE, max_seconds=2)


def test_a_table_of_eighty_million_samples_takes_neither_memory_nor_time() -> None:
    """A few kilobytes of MP4 that make FFmpeg build an index of 2.8 GB before it decodes."""
    bomb = bytearray(MP4)
    count = 80_000_000
    sizes, times, chunks = (bomb.index(name) for name in (b"stsz", b"stts", b"stsc"))
    struct.pack_into(">II", bomb, sizes + 8, 1, count)
    struct.pack_into(">I", bomb, times + 12, count)
    (entries,) = struct.unpack_from(">I", bomb, chunks + 8)
    for entry in range(entries):
        struct.pack_into(">I", bomb, chunks + 12 + 12 * entry + 4, count)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(AudioError):
        read_audio(bytes(bomb), sample_rate=RATE, max_seconds=30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 12
    assert after.ru_maxrss <= max(before.ru_maxrss, 1 << 20)  # KiB, of the largest so far


def test_the_time_it_may_take_ends_by_the_clock_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SECONDS_PER_CPU_SECOND", 0.001)
    with pytest.raises(AudioError, match="with the time and memory"):
        read_audio(file("wav", "pcm_s16le", tone(SECONDS)), sample_rate=RATE, max_seconds=9)
