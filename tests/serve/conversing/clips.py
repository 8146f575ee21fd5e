"""Audio as clients send and get it."""

import base64
import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.unit.deployments.answering_stand_in import RATE, wav


def speech(seconds: float, seed: int = 0) -> NDArray[np.float64]:
    """Something with a pitch that moves, loud enough to be heard."""
    times = np.arange(int(seconds * RATE)) / RATE
    return 0.3 * np.sin(2 * np.pi * (200 + 40 * seed) * times + 3 * np.sin(9 * times))


def heard(samples: Any) -> dict[str, Any]:
    """A part of a user's message."""
    data = base64.b64encode(wav(samples)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def pcm_of(data: str | bytes) -> NDArray[np.int16]:
    """The samples of a WAV file, which may be in base64."""
    file = base64.b64decode(data) if isinstance(data, str) else data
    with wave.open(io.BytesIO(file)) as reader:
        assert reader.getframerate() == RATE
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2").astype(np.int16)
