"""Judges the speech and the transcripts of a running service by a manifest of sentences.

Each line of the manifest is a JSON object: id and text; for speech optionally voice, cfg_scale and
seed; for a recording to write down task "transcription" and audio. What DIR holds of the same
requests is not asked for again, so an evaluation that was interrupted goes on where it was. Exit
status 1 if an item could not be judged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deployments.commands import CommandError, add_url

if TYPE_CHECKING:
    from deployments.evaluation.asking import Answer
    from deployments.evaluation.manifest import Item

HELP = "judge the speech and transcripts of a running service"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", required=True, type=Path, help="JSON lines to read")
    parser.add_argument(
        "--out", type=Path, default=Path("evaluation"), metavar="DIR", help="default: %(default)s"
    )
    add_url(parser)
    parser.add_argument("--model", help="default: the service's first")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="judges at a time")


def run(options: argparse.Namespace) -> int:
    from demo_voice.judging import installed_judges
    from deployments.evaluation.judging import outcomes
    from deployments.evaluation.manifest import ManifestError, read
    from deployments.evaluation.report import to_markdown

    if options.jobs < 1:
        raise CommandError("--jobs: at least 1")
    try:
        items = read(options.manifest)
        ears = installed_judges()
        model, answers = asyncio.run(_ask(options, items))
    except ManifestError as error:
        raise CommandError(str(error)) from error
    except OSError as error:  # of the directory, which is made once the service answers
        raise CommandError(f"{error.filename or options.out}: {error.strerror}") from error
    folder = options.out / "answers"
    found = outcomes(items, answers, folder, options.out / "judgements.jsonl", options.jobs)
    lines = [json.dumps(outcome.to_json()) + "\n" for outcome in found]
    (options.out / "results.jsonl").write_text("".join(lines))
    command = shlex.join(["speechlm", "eval", "--manifest", str(options.manifest)])
    report = options.out / "report.md"
    report.write_text(to_markdown(found, model, command, ears))
    failed = sum(outcome.error is not None for outcome in found)
    print(f"{report} written; {failed} of {len(found)} items failed")
    return 1 if failed else 0


async def _ask(options: argparse.Namespace, items: Sequence[Item]) -> tuple[str, list[Answer]]:
    """The model that was asked, and its answers."""
    import httpx
    from tqdm import tqdm

    from deployments.client import TIMEOUT, authorization, card_of, checked, failures_told
    from deployments.evaluation.asking import ask

    with failures_told(options.url):
        async with httpx.AsyncClient(
            base_url=options.url, timeout=TIMEOUT, headers=authorization()
        ) as client:
            models = checked(await client.get("/v1/models")).json()
            card = card_of(models["data"], options.model)
            with tqdm(total=len(items), desc="answers", disable=None) as progress:
                answers = await ask(
                    client,
                    card["id"],
                    card["voices"][0],
                    items,
                    options.manifest.parent,
                    options.out / "answers",
                    progress.update,
                )
    return card["id"], answers
