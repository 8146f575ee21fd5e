"""PCM as it is everywhere inside: signed 16-bit little-endian mono."""

BYTES_PER_SAMPLE = 2


def seconds_of(pcm: bytes, sample_rate: int) -> float:
    """Its duration.

    Args:
        sample_rate: in Hz.
    """
    return len(pcm) / BYTES_PER_SAMPLE / sample_rate
