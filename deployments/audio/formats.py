"""The audio formats of the API, as encoders that are fed piece by piece."""

from __future__ import annotations

from typing import Literal, Protocol

from deployments.audio.compressed import AAC, FLAC, MP3, OPUS, CompressedEncoder, Compression
from deployments.audio.resampling import Resampler
from deployments.audio.uncompressed import PcmEncoder, WavFileEncoder, WavStreamEncoder

AudioFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
OPENAI_PCM_RATE = 24_000
MIN_RATE, MAX_RATE = 8_000, 48_000

_COMPRESSIONS: dict[AudioFormat, Compression] = {
    "mp3": MP3,
    "opus": OPUS,
    "aac": AAC,
    "flac": FLAC,
}


class Encoder(Protocol):
    """Turns PCM (signed 16-bit little-endian mono, at the codec's rate) into a format.

    Attributes:
        media_type: the answer's content type.
        sample_rate: of the audio that a decoder of the format gives, in Hz.
    """

    media_type: str
    sample_rate: int

    def encode(self, pcm: bytes) -> bytes:
        """The bytes that are ready, perhaps none."""

    def finish(self) -> bytes:
        """The bytes that were held back."""


class _ResampledEncoder:
    """Feeds another encoder at the rate it wants."""

    def __init__(self, encoder: Encoder, resampler: Resampler) -> None:
        self.media_type = encoder.media_type
        self.sample_rate = encoder.sample_rate
        self._encoder = encoder
        self._resampler = resampler

    def encode(self, pcm: bytes) -> bytes:
        return self._encoder.encode(self._resampler.piece(pcm))

    def finish(self) -> bytes:
        return self._encoder.encode(self._resampler.finish()) + self._encoder.finish()


def encoder(
    audio_format: AudioFormat,
    codec_rate: int,
    *,
    streamed: bool,
    sample_rate: int | None = None,
) -> Encoder:
    """A fresh encoder for one answer.

    Args:
        codec_rate: of the PCM it will be fed, in Hz.
        streamed: whether bytes are wanted before all audio exists.
        sample_rate: at which to encode, in Hz. None: OpenAI's 24 kHz for ``pcm``, otherwise
            ``codec_rate`` or, where the format does not have it, the next one above.

    Raises:
        ValueError: the format cannot have this ``sample_rate``.
    """
    if sample_rate is None:
        rate = _usual_rate(audio_format, codec_rate)
    else:
        require_rate(audio_format, sample_rate)
        rate = sample_rate
    made = _encoder_at(audio_format, rate, streamed=streamed)
    return made if rate == codec_rate else _ResampledEncoder(made, Resampler(codec_rate, rate))


def _encoder_at(audio_format: AudioFormat, sample_rate: int, *, streamed: bool) -> Encoder:
    if audio_format == "pcm":
        return PcmEncoder(sample_rate)
    if audio_format == "wav":
        return WavStreamEncoder(sample_rate) if streamed else WavFileEncoder(sample_rate)
    return CompressedEncoder(_COMPRESSIONS[audio_format], sample_rate, streamed=streamed)


def _usual_rate(audio_format: AudioFormat, codec_rate: int) -> int:
    if audio_format == "pcm":
        return OPENAI_PCM_RATE
    if audio_format == "wav":
        return codec_rate
    return _COMPRESSIONS[audio_format].nearest_rate(codec_rate)


def require_rate(audio_format: AudioFormat, sample_rate: int) -> None:
    compression = _COMPRESSIONS.get(audio_format)
    rates = compression.rates if compression else None
    if rates is None:
        possible = f"{MIN_RATE} to {MAX_RATE}"
        is_possible = MIN_RATE <= sample_rate <= MAX_RATE
    else:
        possible = ", ".join(map(str, rates))
        is_possible = sample_rate in rates
    if not is_possible:
        raise ValueError(f"{audio_format} cannot have {sample_rate} Hz; possible are {possible} Hz")
