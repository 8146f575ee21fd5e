"""Audio files of unknown origin into samples, within limits.

What FFmpeg does before the first sample comes out cannot be limited from here: ``reading`` runs
this in a process of its own.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
import soxr
from av.audio.codeccontext import AudioCodecContext
from av.audio.stream import AudioStream
from av.container import InputContainer
from numpy.typing import NDArray

MAX_CHANNELS = 8
MIN_SOURCE_RATE, MAX_SOURCE_RATE = 4_000, 192_000

# FFmpeg's names. None of these formats opens another file or address.
_FORMATS = {
    "wav": "WAV",
    "mp3": "MP3",
    "mov,mp4,m4a,3gp,3g2,mj2": "M4A and MP4",
    "flac": "FLAC",
    "ogg": "Ogg",
    "matroska,webm": "WebM",
    "aac": "AAC",
    "aiff": "AIFF",
}
_CODECS = (
    "aac",
    "aac_latm",
    "adpcm_ima_wav",
    "adpcm_ms",
    "alac",
    "flac",
    "mp3",
    "mp3float",
    "opus",
    "vorbis",
    "pcm_alaw",
    "pcm_f32be",
    "pcm_f32le",
    "pcm_f64be",
    "pcm_f64le",
    "pcm_mulaw",
    "pcm_s16be",
    "pcm_s16le",
    "pcm_s24be",
    "pcm_s24le",
    "pcm_s32be",
    "pcm_s32le",
    "pcm_s8",
    "pcm_u8",
)
# Formats that say how much audio there is, so that a file that was cut can be told.
_SAYS_ITS_LENGTH = ("flac", "mov,mp4,m4a,3gp,3g2,mj2")
_LENGTH_TOLERANCE_SECONDS = 0.5
# What stands behind the last frame of such a file is often no audio.
_HAS_TAILS = "mp3"


class AudioError(ValueError):
    """A file that cannot be used. The message says what it is, for the one who sent it."""


class AudioTooLong(AudioError):
    """More audio than is allowed."""


def decode(data: bytes, *, sample_rate: int, max_seconds: float) -> NDArray[np.float32]:
    """Decodes a file's first audio track, mixes it down and resamples it.

    WAV, and other formats that need not say how long they are, are read as far as they go.

    Args:
        data: the file.
        sample_rate: of the result, in Hz.
        max_seconds: decoding ends as soon as there is more.

    Returns:
        Samples ``[n]``, mono, from -1 to 1.

    Raises:
        AudioTooLong: more than ``max_seconds``.
        AudioError: no audio, another format, or a damaged file.
        MemoryError: FFmpeg got no memory.
    """
    if not data:
        raise AudioError("is empty")
    with _opened(data) as container:
        try:
            pieces = list(_resampled(_frames(container, max_seconds), sample_rate))
        except MemoryError:
            raise
        except av.FFmpegError as error:
            raise AudioError("is damaged") from error
    samples = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    if not len(samples):
        raise AudioError("has no audio in it")
    return samples.clip(-1.0, 1.0)


def _opened(data: bytes) -> InputContainer:
    try:
        container = av.open(
            io.BytesIO(data),
            "r",
            container_options={
                "format_whitelist": ",".join(_FORMATS),
                "codec_whitelist": ",".join(_CODECS),
                "protocol_whitelist": "none",
            },
            metadata_errors="ignore",
            io_open=_refuse_to_open,
        )
    except MemoryError:
        raise
    except av.FFmpegError as error:
        known = ", ".join(_FORMATS.values())
        raise AudioError(f"is damaged, or not audio of a known format ({known})") from error
    assert isinstance(container, InputContainer)
    return container


def _refuse_to_open(*_: object) -> None:
    raise AudioError("refers to another file")


def _frames(container: InputContainer, max_seconds: float) -> Iterator[av.AudioFrame]:
    """The decoded frames, checked one by one."""
    if not container.streams.audio:
        raise AudioError("has no audio in it")
    stream = container.streams.audio[0]
    codec: AudioCodecContext | None = stream.codec_context
    name = codec.name if codec else "unknown"
    if name not in _CODECS:
        raise AudioError(f"has audio of a kind that is not read: {name}")
    seconds = Fraction(0)
    tail: av.FFmpegError | None = None
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            if container.format.name != _HAS_TAILS:
                raise
            tail = error
            continue
        if frames and tail:
            raise tail
        for frame in frames:
            _check(frame)
            seconds += Fraction(frame.samples, frame.sample_rate)
            if seconds > max_seconds:
                raise AudioTooLong(f"is longer than {max_seconds:g} seconds")
            yield frame
    if seconds < _stated_seconds(container, stream) - _LENGTH_TOLERANCE_SECONDS:
        raise AudioError(f"is cut off after {float(seconds):.1f} seconds")


def _check(frame: av.AudioFrame) -> None:
    channels = frame.layout.nb_channels
    if not 1 <= channels <= MAX_CHANNELS:
        raise AudioError(f"has {channels} channels, at most {MAX_CHANNELS} are possible")
    if not MIN_SOURCE_RATE <= frame.sample_rate <= MAX_SOURCE_RATE:
        raise AudioError(
            f"has a sample rate of {frame.sample_rate} Hz; "
            f"{MIN_SOURCE_RATE} to {MAX_SOURCE_RATE} are possible"
        )


def _stated_seconds(container: InputContainer, stream: AudioStream) -> float:
    if container.format.name not in _SAYS_ITS_LENGTH or not stream.duration:
        return 0.0
    return float(stream.duration * (stream.time_base or 0))


def _resampled(frames: Iterator[av.AudioFrame], sample_rate: int) -> Iterator[NDArray[np.float32]]:
    for from_rate, run in itertools.groupby(frames, key=lambda frame: frame.sample_rate):
        resampler = soxr.ResampleStream(from_rate, sample_rate, 1, dtype="float32")
        for frame in run:
            yield resampler.resample_chunk(_mono(frame))
        yield resampler.resample_chunk(np.zeros(0, np.float32), last=True)


def _mono(frame: av.AudioFrame) -> NDArray[np.float32]:
    """The mean of the channels ``[n]``, full scale at 1."""
    values = frame.to_ndarray()
    channels = frame.layout.nb_channels
    by_channel = values if frame.format.is_planar else values.reshape(-1, channels).T
    mean = by_channel.mean(axis=0, dtype=np.float64)
    if values.dtype.kind == "f":
        if not np.isfinite(mean).all():
            raise AudioError("has samples that are no numbers")
        # What is far beyond full scale would be cut to it anyway, and must fit single precision.
        return mean.clip(-2.0, 2.0).astype(np.float32)
    half_range = 2.0 ** (8 * values.dtype.itemsize - 1)
    middle = half_range if values.dtype.kind == "u" else 0.0
    return ((mean - middle) / half_range).astype(np.float32)
