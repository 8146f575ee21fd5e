"""Answers become outcomes: the machine's ears hear speech, transcripts are compared as they are."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from demo_voice.judging import judge
from demo_voice.sources import Sentence, Spoken
from demo_voice.wer import word_errors
from deployments.evaluation.asking import Answer
from deployments.evaluation.manifest import Item
from deployments.evaluation.report import Outcome


def outcomes(
    items: Sequence[Item], answers: Sequence[Answer], folder: Path, known: Path, processes: int
) -> list[Outcome]:
    """Every item, judged, in order.

    Args:
        folder: of the answers' audio.
        known: JSON lines of earlier judgements, which are not made again; grows.
        processes: judges at a time.
    """
    spoken = {
        index: _spoken(item, index, answer, folder)
        for index, (item, answer) in enumerate(zip(items, answers, strict=True))
        if answer.audio is not None
    }
    judgements = dict(zip(spoken, judge(list(spoken.values()), known, processes), strict=True))
    found = []
    for index, (item, answer) in enumerate(zip(items, answers, strict=True)):
        judgement = judgements.get(index)
        transcript = answer.heard if judgement is None else judgement.transcript
        found.append(
            Outcome(
                item=item,
                transcript=transcript,
                errors=None if transcript is None else word_errors(item.text, transcript),
                quality=None if judgement is None else judgement.quality,
                seconds=None if judgement is None else _seconds(spoken[index]),
                finish=answer.finish,
                error=answer.error,
            )
        )
    return found


def _spoken(item: Item, index: int, answer: Answer, folder: Path) -> Spoken:
    assert answer.audio is not None
    with wave.open(io.BytesIO((folder / answer.audio).read_bytes())) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.int16)
        rate = file.getframerate()
    sentence = Sentence("manifest", index, item.text, item.voice or "")
    return Spoken(sentence, samples, rate, answer.finish)


def _seconds(spoken: Spoken) -> float:
    return len(spoken.samples) / spoken.sample_rate
