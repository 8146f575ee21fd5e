"""WAV headers."""

from __future__ import annotations

import struct

from deployments.audio.pcm import BYTES_PER_SAMPLE

HEADER_BYTES = 44
_UNKNOWN = 0xFFFFFFFF


def header(sample_rate: int, pcm_bytes: int | None) -> bytes:
    """The header of a mono file of signed 16-bit samples.

    Args:
        sample_rate: in Hz.
        pcm_bytes: length of what follows; None where it is not known yet, which players
            take as "until the end of the stream".

    Raises:
        ValueError: more bytes than a WAV file can hold.
    """
    if pcm_bytes is None:
        riff_size = data_size = _UNKNOWN
    else:
        riff_size, data_size = HEADER_BYTES - 8 + pcm_bytes, pcm_bytes
        if riff_size >= _UNKNOWN:
            raise ValueError(f"{pcm_bytes} bytes do not fit a WAV file")
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_size,
        b"WAVE",
        b"fmt ",
        16,  # bytes of this chunk
        1,  # PCM
        1,  # channel
        sample_rate,
        sample_rate * BYTES_PER_SAMPLE,
        BYTES_PER_SAMPLE,
        8 * BYTES_PER_SAMPLE,
        b"data",
        data_size,
    )


def file(sample_rate: int, pcm: bytes) -> bytes:
    """A whole file, its sizes true."""
    return header(sample_rate, len(pcm)) + pcm
