"""Says what a model directory can do, and what it lacks."""

from __future__ import annotations

import argparse
import json

from deployments.commands import CommandError

HELP = "say what a model directory can do"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="model directory, or tiny:FAMILY")
    parser.add_argument("--json", action="store_true", help="as a JSON object")


def run(options: argparse.Namespace) -> int:
    from deployments.models.directory import locate
    from deployments.models.report import as_text, report

    _no_progress_bars()
    try:
        found = report(locate(options.model))
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from error
    print(json.dumps(found, indent=1) if options.json else as_text(found))
    return 0


def _no_progress_bars() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
