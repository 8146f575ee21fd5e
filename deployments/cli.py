"""``speechlm``: the command line."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from importlib import metadata

from deployments.commands import CommandError, tell

# Each is a module of deployments.commands with HELP, add_arguments and run. They import
# torch, vLLM and Ray inside run, so that help and mistakes are answered at once.
_COMMANDS = ("serve", "say", "keys", "generate", "eval", "convert", "inspect", "make-tiny")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="speechlm", description="Speech language models.")
    version = f"%(prog)s {metadata.version('speechlm-serve')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in _COMMANDS:
        module = importlib.import_module(f"deployments.commands.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0; 1 with a message on standard error; 130, as of shells, after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except CommandError as error:
        tell(error)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code


if __name__ == "__main__":
    sys.exit(main())
