"""Makes a random model: the true vocabulary of a family around a small body."""

from __future__ import annotations

import argparse
from pathlib import Path

from deployments.commands import CommandError
from engine_adapter.families import FAMILIES

HELP = "make a small random model, for tests"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--family", required=True, choices=sorted(FAMILIES))
    parser.add_argument("--out", required=True, type=Path, help="directory to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=64, help="width, a multiple of 64")
    parser.add_argument("--layers", type=int, default=2)


def run(options: argparse.Namespace) -> int:
    from engine_adapter.tiny import make_tiny

    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise CommandError(f"{options.out}: exists and is not an empty directory")
    if options.layers < 1:
        raise CommandError(f"--layers: must be at least 1, got {options.layers}")
    try:
        directory = make_tiny(
            options.family, options.out, options.seed, options.hidden, options.layers
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    print(directory)
    return 0
