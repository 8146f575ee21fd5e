"""``python -m demo_voice``: makes the demonstration voice, or measures it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from demo_voice import evaluation
from demo_voice.recipe import FULL, MODEL, WORK
from deployments.commands import CommandError


def main() -> int:
    """Runs a command; errors that a user can mend are one line."""
    parser = argparse.ArgumentParser(prog="python -m demo_voice", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="from nothing to a model; goes on where it was")
    export = commands.add_parser("export", help="the model as far as it is trained")
    for command in (make, export):
        command.add_argument("--work", type=Path, default=WORK, help="default: %(default)s")
        command.add_argument("--out", type=Path, default=MODEL, help="default: %(default)s")
    evaluation.add_arguments(commands.add_parser("evaluate", help=evaluation.HELP))
    options = parser.parse_args()
    try:
        if options.command == "evaluate":
            return evaluation.run(options)
        from demo_voice.export import export as write
        from demo_voice.pipeline import make as run

        (run if options.command == "make" else write)(options.work, FULL, options.out)
    except (CommandError, FileNotFoundError) as error:
        print(f"demo_voice: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
