"""The audio that is judged: the teacher's, the codec's round trip of it, the service's."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from demo_voice.client import Client, Request
from demo_voice.recipe import SAMPLE_RATE
from demo_voice.teacher import speak
from demo_voice.texts import HELD_OUT_DOMAINS, held_out
from deployments import whole_file
from deployments.audio import wav
from deployments.text.english import normalize

_CONCURRENT = 4  # requests to the service


@dataclass(frozen=True)
class Sentence:
    """A held-out sentence and who speaks it.

    Attributes:
        index: its place in its domain.
        text: as it is written, numbers in digits.
    """

    domain: str
    index: int
    text: str
    voice: str

    @property
    def name(self) -> str:
        """Its file's name, without ending."""
        return f"{self.domain}-{self.index:03d}-{self.voice}"


@dataclass(frozen=True)
class Spoken:
    """A sentence as audio.

    Attributes:
        samples: int16, one channel.
        sample_rate: in Hz.
        finish: why the service ended it, ``stop`` or ``length``; None for other sources.
    """

    sentence: Sentence
    samples: NDArray[np.int16]
    sample_rate: int
    finish: str | None = None


def sentences(voices: Sequence[str], limit: int | None = None) -> list[Sentence]:
    """All held-out sentences, or the first ``limit`` of each domain; the voices take turns."""
    return [
        Sentence(domain, index, text, voices[index % len(voices)])
        for domain in HELD_OUT_DOMAINS
        for index, text in enumerate(held_out(domain)[:limit])
    ]


def teachers(chosen: Sequence[Sentence], folder: Path) -> list[Spoken]:
    """The teacher's own speech, kept as WAV files in ``folder``."""
    spoken = [
        Spoken(sentence, speak(normalize(sentence.text), sentence.voice), SAMPLE_RATE)
        for sentence in chosen
    ]
    keep(spoken, folder)
    return spoken


def keep(spoken: Sequence[Spoken], folder: Path) -> None:
    """Writes WAV files."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in spoken:
        content = wav.file(each.sample_rate, each.samples.astype("<i2").tobytes())
        (folder / f"{each.sentence.name}.wav").write_bytes(content)


async def served(
    client: Client, model: str, cfg_scale: float, chosen: Sequence[Sentence], folder: Path
) -> list[Spoken]:
    """The service's speech; what ``folder`` holds already is not asked for again."""
    folder.mkdir(parents=True, exist_ok=True)
    turns = asyncio.Semaphore(_CONCURRENT)

    async def one(sentence: Sentence) -> Spoken:
        # The seed is the sentence's own, the same at every guidance scale.
        request = Request(model, sentence.voice, sentence.text, cfg_scale, sentence.index)
        async with turns:
            spoken = await _answer(client, request, sentence, folder)
        progress.update()
        return spoken

    with tqdm(total=len(chosen), desc=f"guidance {cfg_scale:g}", disable=None) as progress:
        # Not a TaskGroup, which would wrap the error of a request in a group.
        return await asyncio.gather(*map(one, chosen))


async def _answer(client: Client, request: Request, sentence: Sentence, folder: Path) -> Spoken:
    audio, record = folder / f"{sentence.name}.wav", folder / f"{sentence.name}.json"
    known = json.loads(record.read_text()) if record.exists() else {}
    if known.get("text") != sentence.text:
        content, finish = await client.speak(request)
        audio.write_bytes(content)
        known = {"text": sentence.text, "seed": request.seed, "finish": finish}
        whole_file.write(record, json.dumps(known))  # last: it says that the audio is whole
    samples, sample_rate = _read(audio.read_bytes())
    return Spoken(sentence, samples, sample_rate, known["finish"])


def _read(content: bytes) -> tuple[NDArray[np.int16], int]:
    with wave.open(io.BytesIO(content)) as file:
        pcm = file.readframes(file.getnframes())
        return np.frombuffer(pcm, "<i2").astype(np.int16), file.getframerate()
