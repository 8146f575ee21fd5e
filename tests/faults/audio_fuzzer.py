"""Feeds damaged audio files to the decoder, in a process that a file may crash.

``python -m tests.faults.audio_fuzzer SEED SECONDS`` says as JSON what became of them. Each file is
written to its standard error before it is tried, as the seed that makes it, so that one that
crashes the process is known.

FFmpeg comes as a wheel without instrumentation, so that a fuzzer that is led by coverage (atheris)
would be led by our few lines of Python alone. Files are made of good ones by edits instead, most of
them near the beginning, where formats have their tables.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import time
from collections import Counter

import av
import numpy as np
from av.audio.stream import AudioStream

from deployments.audio.decoding import AudioError, decode

FORMATS = {
    "wav": "pcm_s16le",
    "wav, adpcm": "adpcm_ms",
    "aiff": "pcm_s16be",
    "flac": "flac",
    "mp3": "libmp3lame",
    "ogg": "libopus",
    "webm": "libopus",
    "mp4": "aac",
    "ipod": "alac",
    "adts": "aac",
}
_RATE, _MAX_SECONDS = 16_000, 5
_MEMORY_BYTES = 2 << 30
_HEAD_BYTES = 400
_COUNTS = (bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x04\xc4\xb4\x00")


def good_file(name: str) -> bytes:
    """A third of a second in one of ``FORMATS``."""
    content = io.BytesIO()
    samples = (8_000 * np.sin(np.arange(_RATE // 3) / 9)).astype("<i2")
    with av.open(content, "w", format=name.partition(",")[0]) as output:
        stream = output.add_stream(FORMATS[name], rate=_RATE)
        assert isinstance(stream, AudioStream)
        stream.codec_context.layout = "mono"
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate = _RATE
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return content.getvalue()


def damaged(good: bytes, seed: int) -> bytes:
    """A file that a seed makes of a good one."""
    random = np.random.default_rng(seed)
    data = bytearray(good)
    for _ in range(int(random.integers(1, 8))):
        most = _HEAD_BYTES if random.random() < 0.7 else len(data)
        place = int(random.integers(0, min(most, len(data)) + 1))
        size = int(random.integers(1, 9))
        match int(random.integers(0, 6)):
            case 0:
                data[place : place + 1] = random.bytes(1)
            case 1:
                data[place : place + size] = random.bytes(size)
            case 2:  # lengths and counts
                data[place : place + 4] = random.choice(
                    [b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)]
                )
            case 3:
                data[place:place] = data[place : place + 8 * size]
            case 4:
                del data[place : place + size]
            case _ if len(data) > 16 and random.random() < 0.3:
                del data[int(random.integers(16, len(data))) :]
    return bytes(data)


def main(seed: int, seconds: float) -> None:
    """Tries files for so long."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    good = {name: good_file(name) for name in FORMATS}
    outcomes: Counter[str] = Counter()
    slowest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        for name, file in good.items():
            print(seed, name, file=sys.stderr, flush=True)
            began = time.process_time()
            try:
                samples = decode(damaged(file, seed), sample_rate=_RATE, max_seconds=_MAX_SECONDS)
                assert np.isfinite(samples).all()
                assert 0 < len(samples) <= _MAX_SECONDS * _RATE + 1
                outcomes["audio"] += 1
            except AudioError:
                outcomes["refused"] += 1
            except MemoryError:  # ``reading`` makes a refusal of it
                outcomes["memory"] += 1
            slowest = max(slowest, time.process_time() - began)
        seed += 1
    print(json.dumps({"outcomes": outcomes, "slowest": slowest}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
