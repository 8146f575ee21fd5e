"""Whether what a load brought can be understood: a recogniser's word errors, of a sample."""

from __future__ import annotations

from collections.abc import Sequence

from bench.speaking import Answer
from demo_voice.client import PCM_RATE
from demo_voice.judges import Recogniser
from demo_voice.wer import Errors, word_errors

INTELLIGIBLE = 0.6
"""The word error rate above which a sample counts as unintelligible. Far above that of the demo
voice: this only tells speech from noise, speech of another text, and cut speech."""


def heard_errors(answers: Sequence[Answer], at_most: int) -> Errors:
    """The word errors of so many answers, taken evenly from all."""
    spoken = [answer for answer in answers if answer.pcm is not None]
    step = max(1, len(spoken) // at_most)
    recogniser = Recogniser()
    errors = Errors()
    for answer in spoken[::step][:at_most]:
        assert answer.pcm is not None
        errors += word_errors(answer.text, recogniser.transcribe(answer.pcm, PCM_RATE))
    return errors
