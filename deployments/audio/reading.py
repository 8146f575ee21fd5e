"""Reads uploaded audio in a process of its own, whose memory and time are limited.

FFmpeg is much C code for data that anybody may send, and a file of a few kilobytes can make it
build tables of gigabytes before it has decoded one sample. What goes wrong there must not go
wrong in a process that serves others. Starting one costs about a quarter of a second of
processor time.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
from numpy.typing import NDArray

from deployments.audio.decoding import AudioError, AudioTooLong, decode

__all__ = ["AudioError", "AudioTooLong", "read_audio"]

_BASE_BYTES = 512 << 20  # Python, numpy, FFmpeg and what decoding takes
_BASE_CPU_SECONDS = 10
_AUDIO_SECONDS_PER_CPU_SECOND = 20
_SECONDS_PER_CPU_SECOND = 3  # on a machine that is busy
_OUT_OF_TIME = "cannot be decoded with the time and memory that its length allows"
_EXIT_CODES: dict[type[AudioError], int] = {AudioError: 65, AudioTooLong: 66}


def read_audio(data: bytes, *, sample_rate: int, max_seconds: float) -> NDArray[np.float32]:
    """As ``decoding.decode``, whatever ``data`` is. Blocks; takes no Python lock meanwhile.

    Raises:
        AudioTooLong: more than ``max_seconds``.
        AudioError: a file that cannot be used.
        RuntimeError: the process failed, not the file.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(sample_rate), repr(max_seconds)],
            input=data,
            capture_output=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # threads reserve memory
            timeout=_cpu_seconds(max_seconds) * _SECONDS_PER_CPU_SECOND,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AudioError(_OUT_OF_TIME) from error
    if done.returncode == 0:
        return np.frombuffer(done.stdout, np.float32)
    for kind, code in _EXIT_CODES.items():
        if done.returncode == code:
            raise kind(done.stdout.decode())
    if done.returncode < 0:  # by a signal: out of time, or a decoder that crashed
        raise AudioError(_OUT_OF_TIME)
    raise RuntimeError(f"reading audio failed: {done.stderr.decode(errors='replace')}")


def _main(sample_rate: int, max_seconds: float) -> int:
    """The process: a file at its standard input, samples or a message at its output."""
    data = sys.stdin.buffer.read()
    result_bytes = int(max_seconds * sample_rate) * np.dtype(np.float32).itemsize
    _limit(resource.RLIMIT_AS, _BASE_BYTES + 3 * len(data) + 4 * result_bytes)
    _limit(resource.RLIMIT_CPU, _cpu_seconds(max_seconds))
    _limit(resource.RLIMIT_CORE, 0)
    try:
        samples = decode(data, sample_rate=sample_rate, max_seconds=max_seconds)
    except MemoryError:
        return _refuse(AudioError("needs more memory than its length allows"))
    except AudioError as error:
        return _refuse(error)
    sys.stdout.buffer.write(samples.tobytes())
    return 0


def _cpu_seconds(max_seconds: float) -> int:
    return _BASE_CPU_SECONDS + int(max_seconds / _AUDIO_SECONDS_PER_CPU_SECOND)


def _refuse(error: AudioError) -> int:
    sys.stdout.buffer.write(str(error).encode())
    return _EXIT_CODES[type(error)]


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), float(sys.argv[2])))
