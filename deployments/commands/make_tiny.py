"""Makes a random model: the true vocabulary of a family around a small body."""

from __future__ import annotations

import argparse
from pathlib import Path

from deployments.commands import CommandError
from engine_adapter.families import FAMILIES

HELP = "make a small random model, for tests"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    family = parser.add_mutually_exclusive_group(required=True)
    family.add_argument("--family", choices=sorted(FAMILIES))
    family.add_argument("--spec", type=Path, help="directory with the speech.json of a new family")
    parser.add_argument("--out", required=True, type=Path, help="directory to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=64, help="width, a multiple of 64")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--backbone", help="with --spec: qwen3 (default), llama or olmo2")
    parser.add_argument("--codec", help="with --spec: dac (default), encodec, mimi or xcodec")


def run(options: argparse.Namespace) -> int:
    from engine_adapter.conversion.staging import check_is_free
    from engine_adapter.spec import StreamSpec
    from engine_adapter.tiny import Recipe, make_tiny, make_tiny_of

    try:
        check_is_free(options.out)
        if options.layers < 1:
            raise CommandError(f"--layers: must be at least 1, got {options.layers}")
        if options.hidden < 64 or options.hidden % 64:
            raise CommandError(f"--hidden: must be a multiple of 64, got {options.hidden}")
        chosen = {k: v for k in ("backbone", "codec") if (v := getattr(options, k)) is not None}
        if chosen and options.spec is None:
            raise CommandError(f"--{next(iter(chosen))}: a served family has its own")
        size = (options.out, options.seed, options.hidden, options.layers)
        if options.spec is None:
            directory = make_tiny(options.family, *size)
        else:
            directory = make_tiny_of(StreamSpec.load(options.spec), Recipe(**chosen), *size)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    print(directory)
    return 0
