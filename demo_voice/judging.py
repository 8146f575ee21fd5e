"""Many judgements at once, each made only once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from demo_voice.judges import REST, SETTINGS, Quality, Recogniser, estimate_quality
from demo_voice.sources import Spoken
from deployments.commands import CommandError

PACKAGES = ("pocketsphinx", "speechmos")


@dataclass(frozen=True)
class Judgement:
    """What the judges made of some audio."""

    transcript: str
    quality: Quality


def judge(spoken: Sequence[Spoken], known: Path, processes: int) -> list[Judgement]:
    """Every judgement, in order.

    Args:
        known: JSON lines of earlier judgements, by hash of audio and judges; grows.
    """
    keys = [_key(each) for each in spoken]
    found = _read(known)
    new = {key: each for key, each in zip(keys, spoken, strict=True) if key not in found}
    # Spawned, since a fork would share the threads of whatever is loaded here.
    with (
        known.open("a") as file,
        ProcessPoolExecutor(processes, get_context("spawn"), initializer=_start) as pool,
    ):
        judgements = pool.map(_judge, new.values())
        progress = tqdm(judgements, desc="judges", total=len(new), disable=None)
        for key, judgement in zip(new, progress, strict=True):
            file.write(json.dumps({"key": key, **asdict(judgement)}) + "\n")
            file.flush()
            found[key] = judgement
    return [found[key] for key in keys]


def judges() -> dict[str, object]:
    """All that a judgement depends on beside the audio."""
    versions = {package: version(package) for package in PACKAGES}
    return {**versions, "settings": SETTINGS, "rest_seconds": REST}


def installed_judges() -> dict[str, object]:
    """The same.

    Raises:
        CommandError: a package of theirs is not installed.
    """
    try:
        return judges()
    except PackageNotFoundError as error:
        raise CommandError(
            f"{error.name} is missing; in the project's directory: requirements/setup demo-voice"
        ) from error


def _key(spoken: Spoken) -> str:
    about = json.dumps([judges(), spoken.sample_rate], sort_keys=True)
    return hashlib.sha256(about.encode() + spoken.samples.tobytes()).hexdigest()


def _read(known: Path) -> dict[str, Judgement]:
    found = {}
    if known.exists():
        for line in known.read_text().splitlines():
            record = json.loads(line)
            quality = Quality(**record["quality"])
            found[record["key"]] = Judgement(record["transcript"], quality)
    return found


_recogniser: Recogniser


def _start() -> None:
    global _recogniser
    _recogniser = Recogniser()


def _judge(spoken: Spoken) -> Judgement:
    transcript = _recogniser.transcribe(spoken.samples, spoken.sample_rate)
    return Judgement(transcript, estimate_quality(spoken.samples, spoken.sample_rate))
