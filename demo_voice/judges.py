"""The machine's ears: a recogniser that knows all of English, and an estimate of quality.

The recogniser is pocketsphinx with its own acoustic and language model. TEACHER.md says how its
settings were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

JUDGE_RATE = 16_000
"""Samples per second (Hz) that both judges hear."""

SETTINGS: dict[str, Any] = {"fwdflatbeam": 1e-72, "fwdflatwbeam": 1e-36}
"""What differs from the defaults of pocketsphinx 5.1.1 and its model, by its own names."""

REST = 0.15
"""Seconds of digital silence that the recogniser gets before and after the audio."""


class Recogniser:
    """Writes down what it hears, one whole utterance at a time.

    The transcript of some audio depends on nothing that was heard before. Not for several
    threads at a time.
    """

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder = Decoder(loglevel="FATAL", **SETTINGS)

    def transcribe(self, samples: NDArray[np.int16], sample_rate: int) -> str:
        """Lower-case words; numbers are spelled out. Empty where no word was heard.

        Args:
            sample_rate: of ``samples``, in Hz.
        """
        if not samples.any():  # in which pocketsphinx hears small words
            return ""
        rest = np.zeros(round(REST * JUDGE_RATE), dtype=np.int16)
        heard = np.concatenate([rest, at_judge_rate(samples, sample_rate), rest])
        self._decoder.start_utt()
        # The whole utterance at once: the mean of the cepstrum is its own, not a running one.
        self._decoder.process_raw(heard.tobytes(), no_search=False, full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return "" if hypothesis is None else str(hypothesis.hypstr)


@dataclass(frozen=True)
class Quality:
    """Estimated mean opinion scores, 1 (bad) to 5 (excellent).

    Attributes:
        overall, signal, background: DNSMOS, as of ITU-T P.835.
        p808: DNSMOS, as of ITU-T P.808.
    """

    overall: float
    signal: float
    background: float
    p808: float


def estimate_quality(samples: NDArray[np.int16], sample_rate: int) -> Quality:
    """What listeners would say of some audio, by speechmos (audio below 9 s is repeated)."""
    from speechmos import dnsmos

    if not samples.size:  # which speechmos would repeat for ever
        samples = np.zeros(sample_rate, dtype=np.int16)
    heard = at_judge_rate(samples, sample_rate).astype(np.float32) / 32768
    scores = dnsmos.run(heard, sr=JUDGE_RATE)
    return Quality(
        overall=float(scores["ovrl_mos"]),
        signal=float(scores["sig_mos"]),
        background=float(scores["bak_mos"]),
        p808=float(scores["p808_mos"]),
    )


def at_judge_rate(samples: NDArray[np.int16], sample_rate: int) -> NDArray[np.int16]:
    """``samples`` at 16 kHz.

    Args:
        sample_rate: of ``samples``, in Hz.
    """
    if sample_rate == JUDGE_RATE:
        return samples
    import soxr

    # Not int16: there soxr dithers.
    resampled = soxr.resample(samples.astype(np.float32), sample_rate, JUDGE_RATE)
    return np.rint(resampled).clip(-(2**15), 2**15 - 1).astype(np.int16)
