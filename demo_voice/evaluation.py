"""Measures a demonstration voice through the running service and writes the report.

All held-out sentences are spoken by the teacher, sent through the codec and asked of the service at
several guidance scales; a recogniser and an estimate of quality judge them alike. An evaluation
that was interrupted goes on where it was: what is there of the same model is not done again.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from demo_voice import realtime
from demo_voice.client import Card, connect
from demo_voice.figures import Playback, speech_seconds
from demo_voice.judging import installed_judges, judge
from demo_voice.recipe import MODEL, WORK
from demo_voice.report import to_markdown
from demo_voice.results import Evaluation, Result
from demo_voice.sources import Sentence, Spoken, keep, sentences, served, teachers
from demo_voice.teacher import VOICES
from demo_voice.wer import word_errors
from deployments.commands import CommandError, add_url

HELP = "measure a voice through the running service"
SCALES = (1.0, 1.5, 2.0, 3.0)
"""Guidance scales that are compared, beside the model's own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    report = Path(__file__).with_name("REPORT.md")
    add_url(parser)
    parser.add_argument("--model", default="demo-voice", help="default: %(default)s")
    parser.add_argument(
        "--model-directory",
        type=Path,
        default=MODEL,
        help="what is served: its codec makes the round trip; default: %(default)s",
    )
    parser.add_argument("--limit", type=int, help="sentences of each domain; default: all")
    parser.add_argument("--out", type=Path, default=report, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=_cores(), help="judges at a time")
    parser.add_argument(
        "--measure-speed-again", action="store_true", help="do not reuse an earlier measurement"
    )


def run(options: argparse.Namespace) -> int:
    if options.limit is not None and options.limit < 1:
        raise CommandError("--limit: at least 1")
    if options.jobs < 1:
        raise CommandError("--jobs: at least 1")
    ears = installed_judges()
    chosen = sentences(VOICES, options.limit)
    fingerprint = fingerprint_of(options.model_directory)
    work = WORK / "evaluation"
    folder = work / fingerprint[:12]
    folder.mkdir(parents=True, exist_ok=True)
    own = teachers(chosen, work / "teacher")
    back = _round_trips(own, options.model_directory, folder)
    # The judges come last: nothing else may use the processor while speed is measured.
    card, (one, many), speech = asyncio.run(_ask(options, chosen, folder))
    groups = [own, back, *speech.values()]
    results = _judged(groups, work / "judgements.jsonl", options.jobs)
    evaluation = Evaluation(
        model=card.id,
        fingerprint=fingerprint,
        scale=card.cfg_scale,
        judges=ears,
        cores=_cores(),
        command=_command(options),
        teacher=results[0],
        round_trip=results[1],
        served=dict(zip(speech, results[2:], strict=True)),
        one=one,
        many=many,
        together=realtime.TOGETHER,
    )
    (folder / "results.json").write_text(json.dumps(evaluation.to_json(), indent=1) + "\n")
    options.out.write_text(to_markdown(evaluation))
    print(f"{options.out} written; every sentence is in {folder / 'results.json'}")
    return 0


def fingerprint_of(directory: Path) -> str:
    """SHA-256 of a model's weights and settings, their names included.

    Raises:
        CommandError: there are no weights in ``directory``.
    """
    files = sorted(
        path for path in directory.rglob("*") if path.suffix in {".json", ".safetensors"}
    )
    if not any(path.suffix == ".safetensors" for path in files):
        raise CommandError(f"{directory}: no weights there")
    digest = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(directory)} {content}\n".encode())
    return digest.hexdigest()


async def _ask(
    options: argparse.Namespace, chosen: Sequence[Sentence], folder: Path
) -> tuple[Card, tuple[list[Playback], list[Playback]], dict[float, list[Spoken]]]:
    async with connect(options.url) as client:
        card = await client.card(options.model)
        if missing := set(VOICES) - set(card.voices):
            raise CommandError(f"{card.id} has no voice {', '.join(sorted(missing))}")
        speed = folder / "speed.json"
        if options.measure_speed_again or not speed.exists():
            measured = await realtime.measure(client, card.id, VOICES, card.cfg_scale)
            realtime.write(speed, *measured)
        speech = {
            scale: await served(client, card.id, scale, chosen, folder / f"guidance-{scale:g}")
            for scale in sorted({*SCALES, card.cfg_scale})
        }
    return card, realtime.read(speed), speech


def _round_trips(own: Sequence[Spoken], model: Path, folder: Path) -> list[Spoken]:
    from demo_voice.round_trip import RoundTrip
    from engine_adapter.checkpoint import ModelDirectory

    try:
        round_trip = RoundTrip(ModelDirectory.open(model).codec)
    except (OSError, RuntimeError, ValueError) as error:
        raise CommandError(str(error)) from error
    spoken = [Spoken(s.sentence, round_trip(s.samples), s.sample_rate) for s in own]
    keep(spoken, folder / "round-trip")
    return spoken


def _judged(groups: Sequence[Sequence[Spoken]], known: Path, jobs: int) -> list[list[Result]]:
    spoken = [each for group in groups for each in group]
    results = [
        Result(
            sentence=each.sentence,
            transcript=judgement.transcript,
            errors=word_errors(each.sentence.text, judgement.transcript),
            quality=judgement.quality,
            speech_seconds=speech_seconds(each.samples, each.sample_rate),
            finish=each.finish,
        )
        for each, judgement in zip(spoken, judge(spoken, known, jobs), strict=True)
    ]
    size = len(groups[0])  # of every group: each speaks the same sentences
    return [results[start : start + size] for start in range(0, len(results), size)]


def _command(options: argparse.Namespace) -> str:
    command = ["python", "-m", "demo_voice", "evaluate", "--url", options.url]
    command += ["--model", options.model]
    if options.limit is not None:
        command += ["--limit", str(options.limit)]
    return shlex.join(command)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
