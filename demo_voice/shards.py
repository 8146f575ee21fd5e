"""Synthesised speech and its codes on disk, a thousand texts a file.

Every file appears whole or not at all, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from demo_voice.recipe import Recipe


@dataclass(frozen=True)
class Utterance:
    """A text as one voice speaks it.

    Attributes:
        samples: int16 at 16 kHz; empty where only codes were read.
        codes: uint8 ``[frames, codebooks]``; empty where only samples were read.
    """

    text: str
    voice: str
    samples: NDArray[np.int16]
    codes: NDArray[np.uint8]


def write_npz(path: Path, **arrays: Any) -> None:
    """Writes a file that exists only when it is complete."""
    part = path.with_name(f".{os.getpid()}-{path.name}")
    with part.open("wb") as file:
        np.savez(file, **arrays)
    part.rename(path)


def synthesise(texts: list[str], recipe: Recipe, work: Path, processes: int) -> None:
    """Has the teacher speak every text, voices in turn; what is there already is kept."""
    from demo_voice.teacher import VOICES

    chunks = [texts[i : i + recipe.shard] for i in range(0, len(texts), recipe.shard)]
    missing = [i for i in range(len(chunks)) if not _speech_file(work, i).exists()]
    with ProcessPoolExecutor(processes) as pool:
        make = partial(_synthesise_shard, work=work, voices=VOICES)
        done = pool.map(make, missing, [chunks[i] for i in missing])
        for _ in tqdm(done, desc="speech", total=len(missing), unit="shard"):
            pass


def _synthesise_shard(index: int, texts: list[str], work: Path, voices: tuple[str, ...]) -> None:
    from demo_voice.teacher import speak

    names = [voices[i % len(voices)] for i in range(len(texts))]
    spoken = [speak(text, voice) for text, voice in zip(texts, names, strict=True)]
    write_npz(
        _speech_file(work, index),
        texts=np.array(texts),
        voices=np.array(names),
        samples=np.concatenate(spoken),
        lengths=np.array([len(samples) for samples in spoken]),
    )


def speech_shards(work: Path) -> list[int]:
    """Indices of the shards with speech."""
    return sorted(int(file.stem.removeprefix("speech-")) for file in work.glob("speech-*.npz"))


def code_shards(work: Path) -> list[int]:
    """Indices of the shards with codes."""
    return sorted(int(file.stem.removeprefix("codes-")) for file in work.glob("codes-*.npz"))


def read_speech(work: Path, index: int) -> Iterator[Utterance]:
    """The utterances of a shard, without codes."""
    with np.load(_speech_file(work, index)) as shard:
        texts, voices, samples, lengths = (
            shard[key] for key in ("texts", "voices", "samples", "lengths")
        )
    none = np.empty((0, 0), dtype=np.uint8)
    ends = np.cumsum(lengths)
    for text, voice, end, length in zip(texts, voices, ends, lengths, strict=True):
        yield Utterance(str(text), str(voice), samples[end - length : end], none)


def write_codes(work: Path, index: int, utterances: list[Utterance]) -> None:
    """Stores texts, voices and codes of a shard."""
    write_npz(
        _codes_file(work, index),
        texts=np.array([u.text for u in utterances]),
        voices=np.array([u.voice for u in utterances]),
        codes=np.concatenate([u.codes for u in utterances]),
        lengths=np.array([len(u.codes) for u in utterances]),
    )


def read_codes(work: Path, index: int) -> Iterator[Utterance]:
    """The utterances of a shard, without samples."""
    with np.load(_codes_file(work, index)) as shard:
        texts, voices, codes, lengths = (
            shard[key] for key in ("texts", "voices", "codes", "lengths")
        )
    none = np.empty(0, dtype=np.int16)
    ends = np.cumsum(lengths)
    for text, voice, end, length in zip(texts, voices, ends, lengths, strict=True):
        yield Utterance(str(text), str(voice), none, codes[end - length : end])


def _speech_file(work: Path, index: int) -> Path:
    return work / f"speech-{index:04d}.npz"


def _codes_file(work: Path, index: int) -> Path:
    return work / f"codes-{index:04d}.npz"
