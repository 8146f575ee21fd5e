"""The commands of ``speechlm``, one per module."""

import argparse
import sys


class CommandError(Exception):
    """A command cannot do what was asked; the message is for whoever typed it."""


def tell(error: CommandError) -> None:
    """Says it on standard error."""
    print(f"speechlm: {error}", file=sys.stderr, flush=True)


def add_url(parser: argparse.ArgumentParser) -> None:
    """The option that names a running service; OpenAI's clients call the same with ``/v1``."""
    parser.add_argument(
        "--url",
        type=lambda url: url.rstrip("/").removesuffix("/v1"),
        default="http://127.0.0.1:8000",
        help="default: %(default)s",
    )
