"""Encoders for MP3, Opus, AAC and FLAC: FFmpeg's, through PyAV."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field

import av
import numpy as np
from av.audio.stream import AudioStream
from av.packet import Packet

from deployments.audio.pcm import BYTES_PER_SAMPLE

_SILENT_SAMPLE = bytes(BYTES_PER_SAMPLE)
_MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True)
class Compression:
    """A container and its codec, with the choices that suit one voice.

    Attributes:
        media_type: of an answer.
        container, codec, sample_format: FFmpeg's names.
        rates: sample rates it can have, in Hz, ascending; None: any.
        bit_rates: bits per second from a sample rate on, ascending; empty: lossless.
        decoded_rate: the rate at which decoders give it, in Hz; None: the encoded one.
        codec_options, container_options: FFmpeg's.
        stream_options: of the container, where it is streamed.
        can_be_empty: whether decoders accept a file without audio.
        audible_packets_only: the codec's last packet may be beyond the end of the audio, and
            the container's header then cannot say where the audio ends.
    """

    media_type: str
    container: str
    codec: str
    sample_format: str
    rates: tuple[int, ...] | None = None
    bit_rates: Mapping[int, int] = field(default_factory=dict)
    decoded_rate: int | None = None
    codec_options: Mapping[str, str] = field(default_factory=dict)
    container_options: Mapping[str, str] = field(default_factory=dict)
    stream_options: Mapping[str, str] = field(default_factory=dict)
    can_be_empty: bool = False
    audible_packets_only: bool = False

    def nearest_rate(self, sample_rate: int) -> int:
        """The lowest possible rate that keeps all of the band, else the highest one."""
        if self.rates is None:
            return sample_rate
        return min((rate for rate in self.rates if rate >= sample_rate), default=self.rates[-1])

    def bit_rate(self, sample_rate: int) -> int | None:
        """Bits per second at a sample rate; None where the codec is lossless."""
        reached = [bits for rate, bits in self.bit_rates.items() if rate <= sample_rate]
        return reached[-1] if reached else None


MP3 = Compression(
    media_type="audio/mpeg",
    container="mp3",
    codec="libmp3lame",
    sample_format="s16p",
    rates=_MPEG_RATES,
    bit_rates={8_000: 32_000, 16_000: 64_000, 32_000: 96_000},
    container_options={"id3v2_version": "0"},  # no tags: there is nothing to say in them
    audible_packets_only=True,
)
OPUS = Compression(
    media_type="audio/opus",
    container="ogg",
    codec="libopus",
    sample_format="s16",
    rates=(8_000, 12_000, 16_000, 24_000, 48_000),
    bit_rates={8_000: 24_000, 16_000: 32_000, 24_000: 48_000},
    decoded_rate=48_000,
    codec_options={"application": "voip"},
    # Two packets a page. A page leaves when the next one is full.
    stream_options={"page_duration": "40000"},
)
AAC = Compression(
    media_type="audio/aac",
    container="adts",
    codec="aac",
    sample_format="fltp",
    rates=_MPEG_RATES,
    bit_rates={8_000: 32_000, 16_000: 48_000, 22_050: 64_000},
)
FLAC = Compression(
    media_type="audio/flac",
    container="flac",
    codec="flac",
    sample_format="s16",
    container_options={"metadata_header_padding": "0"},  # else 8 KiB of zeros
    can_be_empty=True,
)

# FFmpeg's recogniser wants this many frames of an MPEG audio file.
_RECOGNISABLE_PACKETS = 3


class CompressedEncoder:
    """Encodes through FFmpeg, which holds back no more than the codec's own delay.

    Streamed, the container is written without going back, and packets leave as they are made.
    Otherwise it is written into memory, where FFmpeg completes the header at the end: the
    number of frames and what to cut off in MP3, length and MD5 in FLAC.
    """

    def __init__(self, compression: Compression, sample_rate: int, *, streamed: bool) -> None:
        """
        Args:
            sample_rate: of the PCM and of the encoded audio, in Hz; one of ``compression.rates``.
        """
        self.media_type = compression.media_type
        self.sample_rate = compression.decoded_rate or sample_rate
        self._compression = compression
        self._encoded_rate = sample_rate
        self._sink: _Pipe | io.BytesIO = _Pipe() if streamed else io.BytesIO()
        self._container = av.open(
            self._sink,
            "w",
            format=compression.container,
            container_options={
                # Nothing random and no version numbers: the same audio is the same bytes.
                "fflags": "+bitexact",
                **compression.container_options,
                **({"flush_packets": "1", **compression.stream_options} if streamed else {}),
            },
        )
        self._stream = self._begin_stream()
        self._frame_bytes = self._stream.codec_context.frame_size * BYTES_PER_SAMPLE
        self._pcm = bytearray()
        self._samples = 0  # given to the codec
        self._packets = 0

    def encode(self, pcm: bytes) -> bytes:
        """The bytes that are ready; none at all before the end where it is not streamed."""
        self._pcm += pcm
        whole = len(self._pcm) - len(self._pcm) % self._frame_bytes
        for start in range(0, whole, self._frame_bytes):
            self._encode_frame(bytes(self._pcm[start : start + self._frame_bytes]))
        del self._pcm[:whole]
        return self._sink.take() if isinstance(self._sink, _Pipe) else b""

    def finish(self) -> bytes:
        if not (self._samples or self._pcm or self._compression.can_be_empty):
            self._pcm += _SILENT_SAMPLE
        if self._pcm:
            self._encode_frame(bytes(self._pcm))
        self._write(self._stream.encode(None))
        self._container.close()
        return self._sink.take() if isinstance(self._sink, _Pipe) else self._sink.getvalue()

    def _begin_stream(self) -> AudioStream:
        compression = self._compression
        stream = self._container.add_stream(compression.codec, rate=self._encoded_rate)
        assert isinstance(stream, AudioStream)
        codec = stream.codec_context
        codec.layout = "mono"
        codec.format = compression.sample_format
        codec.options = dict(compression.codec_options)
        codec.flags |= av.codec.context.Flags.bitexact
        if bit_rate := compression.bit_rate(self._encoded_rate):
            codec.bit_rate = bit_rate
        self._container.start_encoding()
        return stream

    def _encode_frame(self, pcm: bytes) -> None:
        samples = np.frombuffer(pcm, "<i2")[None]
        if self._compression.sample_format == "fltp":
            frame = av.AudioFrame.from_ndarray(
                samples.astype(np.float32) / 2**15, format="fltp", layout="mono"
            )
        else:
            frame = av.AudioFrame.from_ndarray(
                samples, format=self._compression.sample_format, layout="mono"
            )
        frame.sample_rate = self._encoded_rate
        frame.pts = self._samples
        self._samples += frame.samples
        self._write(self._stream.encode(frame))

    def _write(self, packets: list[Packet[AudioStream]]) -> None:
        for packet in packets:
            beyond_the_end = self._compression.audible_packets_only and not packet.duration
            if beyond_the_end and self._packets >= _RECOGNISABLE_PACKETS:
                continue
            self._container.mux(packet)
            self._packets += 1


class _Pipe:
    """Where FFmpeg writes what is taken away at once. Without ``seek`` it is not sought in."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """What was written since the last call."""
        written = bytes(self._written)
        self._written.clear()
        return written
